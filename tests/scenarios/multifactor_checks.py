"""What a story says about multifactor priority: priorities with their parts, fair shares, usage."""

from __future__ import annotations

from tests.scenarios.outcomes import mismatch
from tests.scenarios.reading import Part
from tests.scenarios.words import key_of
from unisono.engine.ordering.fair_share import level_shares
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.ordering.priority_order import multifactor_of, priority_factors
from unisono.engine.state.cluster import ClusterState


def check_multifactor(part: Part, state: ClusterState) -> None:
    """Compare priorities: a number, or parts of it such as `{priority: 5593, qos: 1500}`."""
    state.refresh()
    for name, wanted in part.entries():
        found = priority_factors(state, key_of(name))
        if found is None:
            raise mismatch(
                wanted, f"{key_of(name)} does not wait, or multifactor priority does not decide"
            )
        parts = {"priority": wanted} if wanted.is_scalar() else dict(wanted.entries())
        weighed = {**{one: getattr(found, one) for one in found.__struct_fields__}}
        weighed.update(found.tres)
        for what, value in parts.items():
            if what not in weighed:
                value.fail(f"there is no part {what}; there are {', '.join(weighed)}")
            _compare(value, float(weighed[what]))


def check_shares(part: Part, state: ClusterState) -> None:
    """Compare fair shares by user, and level fair shares as `level account/prod`."""
    state.refresh()
    multifactor = _multifactor(part, state)
    fair = multifactor.fair_shares()
    level = level_shares(multifactor.accounts, multifactor.usage.billing(multifactor.now))
    named: dict[str, float] = {}
    for number, spec in enumerate(multifactor.accounts.specs):
        named[f"level {multifactor.accounts.owner(number)}"] = float(level[number])
        named[multifactor.accounts.owner(number)] = float(fair[number])
        if spec.user is not None:
            named[spec.user] = float(fair[number])
    for name, wanted in part.entries():
        if name not in named:
            wanted.fail(f"there is no {name}")
        _compare(wanted, named[name])


def check_usage(part: Part, state: ClusterState) -> None:
    """Compare what owners used so far."""
    multifactor = _multifactor(part, state)
    for owner, wanted in part.entries():
        _compare(wanted, multifactor.usage.used(owner, "billing", multifactor.now))


def _multifactor(part: Part, state: ClusterState) -> MultifactorPriority:
    multifactor = multifactor_of(state)
    if multifactor is None:
        part.fail("needs a SchedulingPolicy")
    return multifactor


def _compare(part: Part, actual: float) -> None:
    wanted, decimals = part.decimals()
    if round(actual, decimals) != wanted:
        raise mismatch(part, f"expected {part.value}, got {actual}")
