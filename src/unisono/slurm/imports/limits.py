"""Limits of accounts, users and QOS, as a SchedulingPolicy writes them."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kinds.digits import whole_number
from unisono.slurm.conf import minutes_of
from unisono.slurm.imports.report import Report

Json = dict[str, object]

# What sacctmgr calls it (dump or table) → our field. TRES lists, counts, durations.
_TRES = {
    "grptres": "groupTres",
    "grptresmins": "groupTresMinutes",
    "grptresrunmins": "groupTresRunMinutes",
    "maxtresperjob": "tresPerJob",
    "maxtres": "tresPerJob",
    "maxtrespernode": "tresPerNode",
    "maxtresminsperjob": "tresMinutesPerJob",
    "maxtresmins": "tresMinutesPerJob",
    "maxtresperuser": "tresPerUser",
    "maxtrespu": "tresPerUser",
    "maxtresperaccount": "tresPerAccount",
    "maxtrespa": "tresPerAccount",
    "maxtresrunminsperuser": "tresRunMinutesPerUser",
    "maxtresrunminspu": "tresRunMinutesPerUser",
    "maxtresrunminsperaccount": "tresRunMinutesPerAccount",
    "maxtresrunminspa": "tresRunMinutesPerAccount",
    "mintresperjob": "leastTresPerJob",
    "mintres": "leastTresPerJob",
}
_COUNTS = {
    "grpjobs": "groupJobs",
    "grpjobsaccrue": "groupJobsAccruing",
    "grpsubmitjobs": "groupSubmitted",
    "grpsubmit": "groupSubmitted",
    "maxjobs": "jobsPerUser",
    "maxjobsperuser": "jobsPerUser",
    "maxjobspu": "jobsPerUser",
    "maxjobsaccrue": "jobsAccruingPerUser",
    "maxjobsaccrueperuser": "jobsAccruingPerUser",
    "maxjobsaccruepu": "jobsAccruingPerUser",
    "maxsubmitjobs": "submittedPerUser",
    "maxsubmitjobsperuser": "submittedPerUser",
    "maxsubmitpu": "submittedPerUser",
    "maxjobsperaccount": "jobsPerAccount",
    "maxjobspa": "jobsPerAccount",
    "maxjobsaccrueperaccount": "jobsAccruingPerAccount",
    "maxjobsaccruepa": "jobsAccruingPerAccount",
    "maxsubmitjobsperaccount": "submittedPerAccount",
    "maxsubmitpa": "submittedPerAccount",
}
_TIMES = {
    "maxwalldurationperjob": "wallPerJob",
    "maxwall": "wallPerJob",
    "maxwalldurationperjobmins": "wallPerJob",
    "grpwall": "groupWall",
}
KEYS = frozenset({*_TRES, *_COUNTS, *_TIMES})


def limits_of(keys: Mapping[str, str], whose: str, report: Report) -> Json:
    """Return the limits among the keys of an account, a user or a QOS."""
    made: Json = {}
    for key, value in keys.items():
        if key in _TRES:
            amounts = tres_of(value, f"{key} of {whose}", report)
            if amounts:
                made[_TRES[key]] = amounts
        elif key in _COUNTS and (count := whole_number(value)) is not None:
            made[_COUNTS[key]] = count
        elif key in _TIMES:
            minutes = minutes_of(value)
            if minutes is not None:
                made[_TIMES[key]] = f"{minutes}m"
    for field, amount in made.items():
        report.mapped(f"{whose} {field}", str(amount))
    return made


def tres_of(text: str, what: str, report: Report) -> dict[str, str]:
    """Return amounts of TRES as a policy writes them; those of a type of device are left out.

    >>> tres_of("cpu=32,mem=100G,gres/gpu=4", "x", Report())
    {'cpu': '32', 'mem': '100Gi', 'gres/gpu': '4'}
    """
    made: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, amount = part.partition("=")
        name = name.strip().lower()
        if ":" in name:
            report.dropped(f"{what}: {part}", "types of devices have a flavor with its own quota")
        elif name in ("cpu", "mem", "node", "billing") or name.startswith(("gres/", "license/")):
            if amount not in ("", "-1"):
                made[name] = _memory(amount) if name == "mem" else amount
        else:
            report.dropped(f"{what}: {part}", "is not counted here")
    return made


def _memory(amount: str) -> str:
    """Return an amount of memory; Slurm counts MiB, or says K, M, G, T."""
    last = amount[-1:].upper()
    return f"{amount[:-1]}{last}i" if last in "KMGT" else f"{amount}Mi"
