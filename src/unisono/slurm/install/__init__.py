"""What a real Slurm needs for the bridge: files beside slurm.conf and a few lines in it.

files      the hooks, the settings, and whether they are there
"""
