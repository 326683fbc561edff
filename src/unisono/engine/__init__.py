"""The pure core: it decides. Start at `cycle.py`."""
