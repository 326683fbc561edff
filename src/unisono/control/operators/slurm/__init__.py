"""The operator of Slurm's jobs: a script on the first pod of a gang (spec slurm §5, §6)."""
