"""`sshare`: accounts and users, their shares and what they used (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unisono.slurm.commands.context import COMMON, Context, Outcome, Refused, parse_arguments
from unisono.slurm.formats import parsable, ruled_table
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.listing import published_priorities

_OPTIONS = options_table(
    Option("accounts", "A"),
    Option("all", "a", "nothing"),
    Option("noheader", "h", "nothing"),
    Option("long", "l", "nothing"),
    Option("format", "o"),
    Option("parsable", "p", "nothing"),
    Option("parsable2", "P", "nothing"),
    Option("users", "u"),
    Option("Users", "U", "nothing"),
    Option("verbose", "v", "nothing"),
    Option("help", "", "nothing"),
    *COMMON,
)
_WIDTHS = {
    "Account": -20,
    "User": 10,
    "RawShares": 10,
    "NormShares": 11,
    "RawUsage": 11,
    "NormUsage": 11,
    "EffectvUsage": 13,
    "FairShare": 10,
    "LevelFS": 10,
    "GrpTRESMins": 30,
    "TRESRunMins": 30,
}
_DEFAULT = ("Account", "User", "RawShares", "NormShares", "RawUsage", "EffectvUsage", "FairShare")
_LONG = ("NormUsage", "LevelFS", "GrpTRESMins", "TRESRunMins")


class Share(NamedTuple):
    """One association."""

    account: str
    user: str | None
    depth: int
    shares: int | None
    norm_shares: float
    usage: float
    norm_usage: float
    effective: float
    fair: float
    level: float | str | None


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Print the tree."""
    given = parse_arguments("sshare", arguments, _OPTIONS)
    options = given.options
    if "help" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sshare", _OPTIONS))
    published = published_priorities(context.connect(options))
    if published.get("weights") is None:
        raise Refused("there are no shares without a SchedulingPolicy; create one")
    shares = [Share(*one) for one in published.get("shares") or ()]
    is_classic = bool(published["weights"].get("classic"))
    columns = _columns(options, is_classic=is_classic)
    lines = [_cells(one, is_classic=is_classic) for one in _chosen(shares, options, context.user)]
    heads = "noheader" not in options
    rows = [[cells[name] for name in columns] for cells in lines]
    if "parsable2" in options or "parsable" in options:
        after = "|" if "parsable" in options else ""
        return Outcome(parsable([columns, *rows] if heads else rows, after=after))
    return Outcome(ruled_table(columns, rows, [_WIDTHS[name] for name in columns], heads=heads))


def _columns(options: Mapping[str, str], *, is_classic: bool) -> list[str]:
    if "format" in options:
        known = {name.lower(): name for name in _WIDTHS}
        wanted = [part.partition("%")[0].strip().lower() for part in options["format"].split(",")]
        for name in wanted:
            if name not in known:
                raise Refused(f'Invalid field requested: "{name}"')
        return [known[name] for name in wanted]
    found = [*_DEFAULT]
    if "long" in options:
        found.insert(5, "NormUsage")
        found += [name for name in _LONG[1:] if name != "LevelFS" or not is_classic]
    return found


def _chosen(shares: list[Share], options: Mapping[str, str], user: str) -> list[Share]:
    """Return those asked for: without `-a` and `-u`, of users only oneself."""
    users = set(filter(None, options.get("users", "").split(",")))
    accounts = set(filter(None, options.get("accounts", "").split(",")))
    wanted = users or {user}
    return [
        one
        for one in shares
        if (not accounts or one.account in accounts)
        and (one.user is None or "all" in options or one.user in wanted)
        and not ("Users" in options and one.user is None)
    ]


def _cells(one: Share, *, is_classic: bool) -> dict[str, str]:
    shares = "parent" if one.shares is None else str(one.shares)
    is_root = one.depth == 0
    level: Any = one.level
    return {
        "Account": " " * one.depth + one.account,
        "User": one.user or "",
        "RawShares": "" if is_root else shares,
        "NormShares": f"{one.norm_shares:.6f}",
        "RawUsage": str(int(one.usage)),
        "NormUsage": "" if is_root else f"{one.norm_usage:.6f}",
        "EffectvUsage": f"{1.0 if is_root else one.effective:.6f}",
        "FairShare": f"{one.fair:.6f}" if one.user is not None or is_classic else "",
        "LevelFS": "" if level is None else level if isinstance(level, str) else f"{level:.6f}",
        "GrpTRESMins": "",
        "TRESRunMins": "",
    }
