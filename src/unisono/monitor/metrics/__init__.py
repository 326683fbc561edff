"""Figures from the cache, as families for Prometheus; `page.py` gathers them."""
