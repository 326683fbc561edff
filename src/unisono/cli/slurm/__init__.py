"""`unisono slurm`: import a Slurm configuration, or work beside a running Slurm."""
