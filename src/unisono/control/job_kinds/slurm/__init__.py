"""SlurmJob, of jobs that came through sbatch, salloc and srun: its kind and its keys."""

from __future__ import annotations

from unisono.kube.mapping import Kind
from unisono.slurm.labels import API_VERSION, ARRAY_ID, JOB_ID, KIND

__all__ = ["ARRAY_ID", "JOB_ID"]

JOB = Kind(API_VERSION, KIND)
# On a job: the Workload that was admitted. Without it there are no pods.
ADMITTED = "unisono.dev/admitted-workload"
# On pods: how often the job was queued again before, and the number of the node.
RESTART = "unisono.dev/slurm-restart"
NUMBER = "batch.kubernetes.io/job-completion-index"
# The index of tasks by the uid of their array.
# How long a job may take to end after SIGTERM (KillWait).
KILL_WAIT = 30
