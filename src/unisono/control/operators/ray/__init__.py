"""Ray clusters and the jobs that bring one along (jobs §5)."""
