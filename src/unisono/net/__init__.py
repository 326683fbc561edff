"""Sockets that are listened on; see `listener`."""
