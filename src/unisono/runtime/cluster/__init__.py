"""A replica of `unisono controller` on a real cluster: checks, leadership, health, page."""
