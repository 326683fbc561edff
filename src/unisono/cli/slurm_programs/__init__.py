"""Slurm's programs under their own names: what each does in a line, and examples for its help.

Scripts call them many times, so nothing else is loaded with this.
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

EXAMPLES = {
    "sbatch": (
        "unisono sbatch train.sh",
        "unisono sbatch -N4 --gres=gpu:8 -t 2:00:00 -A vision train.sh",
        "unisono sbatch --array=0-9%2 --dependency=afterok:17 sweep.sh",
    ),
    "squeue": ("unisono squeue", "unisono squeue --me", "unisono squeue --start -t PD"),
    "scancel": ("unisono scancel 17", "unisono scancel 18_[0-3]", "unisono scancel -u ann -t PD"),
    "sinfo": ("unisono sinfo", "unisono sinfo -N -l", "unisono sinfo -p gpu -o '%P %D %t'"),
    "sprio": ("unisono sprio -l", "unisono sprio -w", "unisono sprio -u ann"),
    "sshare": ("unisono sshare -a", "unisono sshare -A vision -l"),
    "sacct": ("unisono sacct", "unisono sacct -j 17 -o JobID,State,Elapsed,ExitCode"),
    "sdiag": ("unisono sdiag", "unisono sdiag --json"),
    "sreport": (
        "unisono sreport cluster utilization",
        "unisono sreport user top start=2026-01-01 -T gres/gpu",
    ),
    "scontrol": (
        "unisono scontrol show job 17",
        "unisono scontrol hold 17",
        "unisono scontrol update JobId=17 TimeLimit=4:00:00",
    ),
}


def examples_of(name: str) -> str:
    """Return the examples below the help of a program."""
    return "\nexamples:\n" + "".join(f"  {line}\n" for line in EXAMPLES[name])
