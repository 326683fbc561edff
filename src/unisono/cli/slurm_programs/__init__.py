"""Slurm's programs (`sbatch`, `squeue`, …) under their own names."""
