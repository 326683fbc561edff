"""Speaks Slurm: its scripts, its configuration, its programs' output, and the real one."""
