"""Volcano's jobs, pod groups and queues (jobs §4)."""
