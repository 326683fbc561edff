"""Kueue's integration specs, with our program in its manager's place."""
