"""Pods that act as if they ran: their spec and annotations say for how long and how they end."""
