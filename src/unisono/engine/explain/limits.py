"""Limits as text: Slurm's reason first, then one clause with numbers."""

from __future__ import annotations

from unisono.engine.model.explanation import ArrayLimit, Held, LimitReached
from unisono.engine.ordering.accounts import describe


def limit_sentence(fact: LimitReached) -> str:
    """Return which limit a workload would exceed, and by how much.

    >>> limit_sentence(
    ...     LimitReached(
    ...         code="QOSMaxGRESPerUser",
    ...         owner="qos/normal",
    ...         per="user",
    ...         member="ann",
    ...         tres="gres/gpu",
    ...         used=3000,
    ...         wanted=3000,
    ...         limit=4000,
    ...     )
    ... )
    'QOSMaxGRESPerUser: user ann uses 3 of 4 gres/gpu that QOS normal allows a user, and asks for 3'
    """
    text = f"{fact.code}: {_clause(fact)}"
    return f"{text}; it is refused" if fact.denied else text


def _clause(fact: LimitReached) -> str:
    owner, limit = describe(fact.owner), _amount(fact.limit, fact)
    match fact.per:
        case "job":
            return f"asks for {_amount(fact.wanted, fact)}, and {owner} allows a workload {limit}"
        case "node":
            asked = _amount(fact.wanted, fact)
            return f"asks for {asked} on one node, and {owner} allows {limit}"
        case "least":
            return f"asks for {_amount(fact.wanted, fact)}, and {owner} wants at least {limit}"
        case "user" | "account":
            subject = f"{fact.per} {fact.member}" if fact.member else f"its {fact.per}"
            allows = f"that {owner} allows {'a user' if fact.per == 'user' else 'an account'}"
            return f"{subject} {_uses(fact)} {allows}, and {_asks(fact)}"
        case "group":
            return f"{owner} {_uses(fact)}, and {_asks(fact)}"


def _uses(fact: LimitReached) -> str:
    limit = _amount(fact.limit, fact)
    number = _amount(fact.used, fact).partition(" ")[0] if fact.unit != "time" else ""
    match fact.unit:
        case "jobs":
            verb = "has" if fact.denied else "runs"
            return f"{verb} {fact.used} of {fact.limit} workloads"
        case "tres":
            return f"uses {number} of {limit}"
        case "tres-minutes":
            return f"counts {number} of {limit}"
        case "time":
            return f"ran for {_amount(fact.used, fact)} of {limit}"


def _asks(fact: LimitReached) -> str:
    if fact.unit == "jobs":
        return "this is one more"
    if not fact.wanted:
        return "has to wait until that has decayed"
    return f"asks for {_amount(fact.wanted, fact).partition(' ')[0]}"


def _amount(amount: int, fact: LimitReached) -> str:
    match fact.unit:
        case "jobs":
            return f"{amount}"
        case "time":
            return f"{amount / 60_000:g} min"
        case "tres":
            return f"{amount / 1000:g} {fact.tres}{' MiB' if fact.tres == 'mem' else ''}"
        case "tres-minutes":
            return f"{amount / 1000:g} {fact.tres} minutes"


def limit_help(fact: LimitReached) -> str:
    """Return what would change that."""
    if fact.per in ("job", "node"):
        return f"ask for less, or raise the limit of {describe(fact.owner)}"
    if fact.per == "least":
        return "ask for more, or use another QOS or partition"
    if fact.until is not None or not fact.wanted:
        return "time: usage decays by half every half-life"
    if fact.unit == "jobs" and fact.denied:
        return "submit fewer at a time, or wait until some end"
    return f"workloads that count for {describe(fact.owner)} end, or its limit is raised"


def held_sentence(fact: Held | ArrayLimit) -> str:
    """Return what holds a workload back.

    >>> held_sentence(Held(by="admin"))
    'JobHeldAdmin: held by an administrator'
    """
    if isinstance(fact, ArrayLimit):
        most = f"at most {fact.limit} of array {fact.array} may run at a time"
        return f"JobArrayTaskLimit: {most}, and as many run or are next"
    if fact.by == "admin":
        return "JobHeldAdmin: held by an administrator"
    return "JobHeldUser: held by its user"
