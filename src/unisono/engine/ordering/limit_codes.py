"""Slurm's words for limits, which scripts know by heart; they are not quite regular."""

from __future__ import annotations

from typing import Literal

Form = Literal[
    "group",
    "group-minutes",
    "group-run-minutes",
    "job",
    "job-minutes",
    "node",
    "user",
    "account",
    "least",
]
Side = Literal["Assoc", "QOS"]

_ENDS = {
    "group": "",
    "group-minutes": "Minutes",
    "group-run-minutes": "RunMinutes",
    "job": "PerJob",
    "job-minutes": "MinutesPerJob",
    "node": "PerNode",
    "user": "PerUser",
    "account": "PerAccount",
    "least": "",
}
# Where the word ends in Limit: those that are older than the other kinds of TRES.
_LIMIT = {
    ("cpu", "group"),
    ("cpu", "group-minutes"),
    ("cpu", "group-run-minutes"),
    ("cpu", "job"),
    ("cpu", "job-minutes"),
    ("cpu", "user"),
    ("mem", "group"),
    ("node", "group"),
    ("node", "job"),
    ("node", "user"),
}


def limit_code(side: Side, form: Form, tres: str) -> str:
    """Return the word for a limit on a TRES.

    >>> limit_code("QOS", "user", "gres/gpu"), limit_code("Assoc", "group", "gres/gpu")
    ('QOSMaxGRESPerUser', 'AssocGrpGRES')
    >>> limit_code("Assoc", "group-minutes", "cpu"), limit_code("QOS", "job", "mem")
    ('AssocGrpCPUMinutesLimit', 'QOSMaxMemoryPerJob')
    >>> limit_code("QOS", "least", "cpu"), limit_code("QOS", "account", "cpu")
    ('QOSMinCpuNotSatisfied', 'MaxCpuPerAccount')
    """
    kind = _kind(side, form, tres)
    if form == "least":
        return "QOSMinCpuNotSatisfied" if tres == "cpu" else f"QOSMin{kind}"
    start = "Grp" if form.startswith("group") else "Max"
    word = f"{start}{kind}{_ENDS[form]}"
    if (tres, form) in _LIMIT:
        word += "Limit"
    return word if form == "account" else f"{side}{word}"


def _kind(side: Side, form: Form, tres: str) -> str:
    if tres == "cpu":
        return "CPU" if form in ("group-minutes", "group-run-minutes") else "Cpu"
    if tres == "mem":
        return "Mem" if side == "Assoc" or form == "group" else "Memory"
    kind = tres.partition("/")[0]
    known = {"node": "Node", "gres": "GRES", "billing": "Billing", "license": "License", "bb": "BB"}
    return known.get(kind, "Unknown")
