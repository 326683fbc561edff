"""Makes `src/unisono/kinds/shapes/data` from published schemas; run by hand, see `__main__`."""
