"""Machines: what types there are, and nodes made from them."""
