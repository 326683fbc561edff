"""Backfill: expected ends, reservations for what has to wait, and what may start ahead of them."""
