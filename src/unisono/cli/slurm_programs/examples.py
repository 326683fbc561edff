"""Examples below the help of Slurm's programs."""

from __future__ import annotations

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
        "unisono sreport user top start=2026-01-01 -t hours",
    ),
    "scontrol": (
        "unisono scontrol show job 17",
        "unisono scontrol hold 17",
        "unisono scontrol update JobId=17 TimeLimit=4:00:00",
    ),
}


def examples_of(name: str) -> str:
    """Return the examples of a program as the end of its help."""
    return "\nexamples:\n" + "".join(f"  {line}\n" for line in EXAMPLES[name])
