"""SlurmJob: jobs that came through sbatch, salloc and srun."""
