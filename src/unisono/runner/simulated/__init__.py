"""Simulated pods: spec and annotations say how long they run and how they end."""
