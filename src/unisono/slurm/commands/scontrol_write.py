"""`scontrol write batch_script JOB [FILE]`: the script of a job, as it was submitted."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence

from unisono.slurm.commands.context import Around, Outcome
from unisono.slurm.commands.job_lookup import called, find


def write(words: Sequence[str], options: Mapping[str, str], around: Around) -> Outcome:
    """Write the script of a job to a file; `-` prints it."""
    if len(words) < 2 or words[0] != "batch_script":
        return Outcome("", f"invalid write argument: {' '.join(words)}\n", 1)
    api = around.connect(options)
    one = called(words[1])
    found = find(api, one) if one is not None else None
    if found is None or not (found.jobs or found.array):
        return Outcome("", "job script retrieval failed: Invalid job id specified\n", 1)
    job = found.jobs[0] if found.jobs else found.array or {}
    name, namespace = job["spec"].get("script", ""), job["metadata"]["namespace"]
    secret = api.find(f"/api/v1/namespaces/{namespace}/secrets/{name}") or {}
    script = binascii.a2b_base64((secret.get("data") or {}).get("script") or "").decode()
    path = words[2] if len(words) > 2 else f"slurm-{words[1]}.sh"
    if path == "-":
        return Outcome(script)
    around.save(path, script)
    return Outcome(f"batch script for job {words[1]} written to {path}\n")
