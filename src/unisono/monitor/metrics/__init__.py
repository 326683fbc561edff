"""Metrics from the cache, as families for Prometheus; `registry.py` gathers them."""
