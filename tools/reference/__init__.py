"""Pages of the reference that are written by the code itself: commands, kinds, metrics.

`make reference` writes them; a test demands that they are current.
"""
