"""Slurm support: its scripts, configuration and commands, and the bridge to a real Slurm."""
