"""What a real Slurm needs for the bridge: files beside slurm.conf and a few lines in it.

files      the hooks' texts, filled in
check      what is there, what is missing, and what would be dangerous
"""
