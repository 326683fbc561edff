"""The names of Slurm's programs, and what each does in a line.

Apart from everything else: scripts call them many times, and they load nothing more.
"""

from __future__ import annotations

PROGRAMS = {
    "sbatch": "submit a batch script, as Slurm does",
    "squeue": "list jobs of Slurm that wait or run",
    "scancel": "stop jobs of Slurm",
    "sinfo": "list partitions and the states of their nodes",
    "sprio": "list the priorities of waiting jobs, part by part",
    "sshare": "list accounts and users, their shares and what they used",
    "sacct": "list jobs of Slurm that ran",
    "sdiag": "say how scheduling goes, as Slurm does",
    "sreport": "report the usage of accounts and users",
    "scontrol": "show, hold, release, requeue and change jobs of Slurm",
}
