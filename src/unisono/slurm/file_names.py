"""Names of output files: `slurm-%A_%a.out` and what stands for its signs (spec slurm §6)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.kinds.digits import is_digits, whole_number

# Stands for the name of the node until a process knows it.
NODE = "\x01"
_SIGN = re.compile(r"%(\d*)([a-zA-Z%])")
_MOST_DIGITS = 10


def file_name(pattern: str, signs: Mapping[str, str]) -> str:
    """Return a pattern with its signs replaced; a backslash in it stops all of that.

    >>> file_name("out-%4j-%x.%%", {"j": "12", "x": "my job"})
    'out-0012-my job.%'
    >>> file_name("a\\\\\\\\%j", {"j": "12"})
    'a%j'
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def replaced(found: re.Match[str]) -> str:
        width, sign = found[1], found[2]
        if sign == "%":
            return "%"
        if sign not in signs:
            return found[0]
        value = signs[sign]
        if not width or not is_digits(value):
            return value
        wanted = whole_number(width)
        return value.zfill(_MOST_DIGITS if wanted is None else min(wanted, _MOST_DIGITS))

    return _SIGN.sub(replaced, pattern)


def output_files(spec: Mapping[str, object], restarts: int) -> tuple[str, str, str]:
    """Return where a job's output, its errors and its input are; relative to its directory.

    An empty name of the second means: where the output goes.
    """
    options: Mapping[str, str] = spec.get("options") or {}  # type: ignore[assignment]  # by its schema
    task: Mapping[str, int] | None = spec.get("task")  # type: ignore[assignment]  # by its schema
    identity = str(spec["jobId"])
    signs = {
        "j": identity,
        "J": identity,
        "A": str(task["arrayJobId"]) if task else identity,
        "a": str(task["index"]) if task else "4294967294",
        "b": str(task["index"] % 10) if task else "4",
        "s": "batch",
        "N": NODE,
        "n": "0",
        "t": "0",
        "u": str(spec.get("user", "")),
        "x": str(spec.get("jobName", "")),
        "r": str(restarts),
    }
    default = "slurm-%A_%a.out" if task else "slurm-%j.out"
    return (
        file_name(options.get("output", default), signs),
        file_name(options["error"], signs) if "error" in options else "",
        file_name(options["input"], signs) if "input" in options else "/dev/null",
    )
