"""Figures from the books, as families for Prometheus; `page.py` gathers them."""
