"""Volcano's Job, PodGroup and Queue."""
