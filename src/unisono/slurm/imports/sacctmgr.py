"""What sacctmgr prints: the dump of a cluster's associations, and the table of its QOS.

    sacctmgr dump hpc file=hpc.cfg
    sacctmgr -P show qos format=Name,Priority,… > qos.txt      (with its heading)

A dump has lines `Account - 'vision':Fairshare=30:QOS='+high,+low'`; `Parent - 'vision'` begins the
block of its children. The QOS themselves are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.slurm.conf import Remark

ROOT = "root"

# The columns of a table of QOS without a heading: the order that the documentation asks for.
QOS_COLUMNS = (
    "Name",
    "Priority",
    "GraceTime",
    "Preempt",
    "PreemptMode",
    "Flags",
    "UsageFactor",
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "GrpJobs",
    "GrpSubmit",
    "GrpWall",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxWall",
    "MaxTRESPU",
    "MaxJobsPU",
    "MaxSubmitPU",
    "MaxTRESPA",
    "MaxJobsPA",
    "MaxSubmitPA",
    "MinTRES",
)


@dataclass(frozen=True, slots=True)
class Member:
    """A user of an account."""

    name: str
    keys: Mapping[str, str]  # in lower case


@dataclass(slots=True)
class AccountBlock:
    """An account, its parent and its users."""

    name: str
    parent: str
    keys: Mapping[str, str]
    users: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class Dump:
    """All associations of a cluster, parents before children."""

    cluster: str = ""
    accounts: dict[str, AccountBlock] = field(default_factory=dict)
    unknown: list[Remark] = field(default_factory=list)


def read_dump(text: str, file: str = "dump") -> Dump:
    """Return the associations of a dump."""
    made = Dump()
    parent = ROOT
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        kind, dash, rest = line.partition(" - ")
        fields = _fields(rest)
        if not dash or not fields:
            made.unknown.append(Remark(f"{file}:{number}", line[:40], "is not a line of a dump"))
            continue
        name, keys = fields[0], _pairs(fields[1:])
        match kind.strip():
            case "Cluster":
                made.cluster = name
                made.accounts[ROOT] = AccountBlock(ROOT, ROOT, keys)
            case "Parent":
                parent = name
                made.accounts.setdefault(parent, AccountBlock(parent, ROOT, {}))
            case "Account":
                made.accounts[name] = AccountBlock(name, parent, keys)
            case "User":
                block = made.accounts.setdefault(parent, AccountBlock(parent, ROOT, {}))
                block.users.append(Member(name, keys))
            case _:
                made.unknown.append(Remark(f"{file}:{number}", kind, "is not a kind of line"))
    return made


def read_qos(text: str) -> dict[str, Mapping[str, str]]:
    """Return the QOS of a table, by name; keys in lower case."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return {}
    heading = list(QOS_COLUMNS)
    first = lines[0].split("|")
    if first[0].strip().lower() == "name":
        heading, lines = [one.strip() for one in first], lines[1:]
    found: dict[str, Mapping[str, str]] = {}
    for line in lines:
        cells = dict(zip([one.lower() for one in heading], line.split("|"), strict=False))
        keys = {key: value.strip() for key, value in cells.items() if value.strip()}
        if keys.get("name"):
            found[keys["name"]] = keys
    return found


def _fields(text: str) -> list[str]:
    """Split at colons outside of quotes; quotes are taken off."""
    found, current, is_quoted = [], "", False
    for letter in text:
        if letter == "'":
            is_quoted = not is_quoted
        elif letter == ":" and not is_quoted:
            found.append(current)
            current = ""
        else:
            current += letter
    found.append(current)
    return [one.strip() for one in found]


def _pairs(fields: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in fields:
        key, equals, value = one.partition("=")
        if equals:
            found[key.strip().lower()] = value
    return found
