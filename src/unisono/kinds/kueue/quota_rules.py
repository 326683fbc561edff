"""Resource groups: what Kueue demands of them, what we forgive, and the engine's form.

A group gives quota per flavor, or once for all of its flavors (a *pool*, spec quota §2.2):

    flavors: [{name: a100, resources: [{name: gpu, nominalQuota: 8}]}]         per flavor
    flavors: [a100, h100]                resources: [{name: gpu, …}]           pooled

Forgiven with a warning, refused in strict mode (§2): pools, a flavor that omits a covered resource
(unmetered there), resources in another order than `coveredResources`, limits without a cohort.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.engine.model import queue as engine
from unisono.engine.model.names import FlavorName, ResourceName
from unisono.kinds.kueue.queues import FlavorQuotas, ResourceGroup, ResourceQuota
from unisono.kinds.meta import wrong_with_label_key, wrong_with_subdomain
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity

MAX_GROUPS = 16
MAX_PER_GROUP = 64  # flavors, and covered resources
MAX_TOTAL = 256  # flavors, and covered resources, of all groups
MAX_PAIRS = 512  # flavor and resource, of one group


def check_groups(
    groups: Sequence[ResourceGroup], notes: Notes, *, is_queue: bool, parent: str, parent_field: str
) -> None:
    """Report everything about the groups of a ClusterQueue (`is_queue`) or of a Cohort.

    `parent` is the cohort above, without which limits mean nothing.
    """
    path = "spec.resourceGroups"
    if len(groups) > MAX_GROUPS:
        notes.problem(path, f"has {len(groups)} groups; at most {MAX_GROUPS} are allowed")
    _check_totals(groups, path, notes)
    flavor_at: dict[str, str] = {}
    resource_at: dict[str, str] = {}
    for index, group in enumerate(groups):
        at = f"{path}[{index}]"
        _check_sizes(group, at, notes)
        _check_unique(covered_resources(group), f"{at}.coveredResources", resource_at, notes)
        _check_unique(flavor_names(group), f"{at}.flavors", flavor_at, notes)
        _check_names(group, at, notes)
        if group.resources or any(isinstance(flavor, str) for flavor in group.flavors):
            _check_pool(group, at, notes)
        else:
            _check_flavors(group, at, notes)
        for where, quota in _quotas_with_paths(group, at):
            _check_quota(quota, where, notes, is_queue=is_queue)
            _check_limits(quota, where, notes, parent=parent, parent_field=parent_field)


def flavor_names(group: ResourceGroup) -> list[str]:
    """Return the flavors of a group in the order in which they are tried."""
    return [flavor if isinstance(flavor, str) else flavor.name for flavor in group.flavors]


def covered_resources(group: ResourceGroup) -> tuple[str, ...]:
    """Return what a group covers; a pool may leave that to the names of its quotas."""
    return group.covered_resources or tuple(quota.name for quota in group.resources)


def is_pool(group: ResourceGroup) -> bool:
    """Say whether the group gives its quota once for all of its flavors."""
    return bool(group.resources)


# ---- rules -------------------------------------------------------------------------------------


def _check_totals(groups: Sequence[ResourceGroup], path: str, notes: Notes) -> None:
    flavors = sum(len(group.flavors) for group in groups)
    resources = sum(len(covered_resources(group)) for group in groups)
    for count, what in ((flavors, "flavors"), (resources, "covered resources")):
        if count > MAX_TOTAL:
            message = f"have {count} {what} together; at most {MAX_TOTAL} are allowed"
            notes.problem(path, message)


def _check_sizes(group: ResourceGroup, at: str, notes: Notes) -> None:
    resources = covered_resources(group)
    for items, field, what in (
        (resources, "coveredResources", "covered resources"),
        (group.flavors, "flavors", "flavors"),
    ):
        if not items:
            notes.problem(f"{at}.{field}", "is required")
        elif len(items) > MAX_PER_GROUP:
            message = f"has {len(items)} {what}; at most {MAX_PER_GROUP} are allowed in a group"
            notes.problem(f"{at}.{field}", message)
    pairs = len(group.flavors) * len(resources)
    if pairs > MAX_PAIRS:
        message = f"has {pairs} pairs of flavor and resource; at most {MAX_PAIRS} are allowed"
        notes.problem(at, message)


def _check_unique(names: Iterable[str], at: str, seen: dict[str, str], notes: Notes) -> None:
    for index, name in enumerate(names):
        path = f"{at}[{index}]"
        if name in seen:
            notes.problem(path, f'"{name}" stands at {seen[name]} already; it can be in one group')
        seen.setdefault(name, path)


def _check_names(group: ResourceGroup, at: str, notes: Notes) -> None:
    for index, name in enumerate(group.covered_resources):
        wrong = wrong_with_label_key(name)
        if wrong:
            notes.problem(f"{at}.coveredResources[{index}]", wrong)
    for index, flavor in enumerate(group.flavors):
        name, field = (flavor, "") if isinstance(flavor, str) else (flavor.name, ".name")
        wrong = wrong_with_subdomain(name)
        if wrong:
            notes.problem(f"{at}.flavors[{index}]{field}", wrong)


def _check_pool(group: ResourceGroup, at: str, notes: Notes) -> None:
    """Report a group that is neither clearly pooled nor clearly per flavor."""
    named = [isinstance(flavor, str) for flavor in group.flavors]
    if any(named) and not all(named):
        message = "mixes flavor names and flavors with quota; write all of them in one way"
        notes.problem(f"{at}.flavors", message)
        return
    if not group.resources:
        message = "is required when flavors are only names: it holds their common quota"
        notes.problem(f"{at}.resources", message)
        return
    if not all(named):
        message = "gives a quota for the whole group, but the flavors have their own; keep one"
        notes.problem(f"{at}.resources", message)
        return
    _check_listed(group, group.resources, at, notes)
    missing = [name for name in covered_resources(group) if name not in _names(group.resources)]
    if missing:
        notes.problem(f"{at}.resources", f"has no quota for {', '.join(missing)}")
    message = "Kueue only knows quota per flavor; here all flavors of the group share one quota"
    notes.lenient("PooledGroup", f"{at}.resources", message)


def _check_flavors(group: ResourceGroup, at: str, notes: Notes) -> None:
    covered = covered_resources(group)
    for index, flavor in enumerate(group.flavors):
        assert isinstance(flavor, FlavorQuotas)
        where = f"{at}.flavors[{index}]"
        _check_listed(group, flavor.resources, where, notes)
        listed = [name for name in _names(flavor.resources) if name in covered]
        missing = [name for name in covered if name not in listed]
        if missing:
            message = (
                f"has no quota for {' and '.join(missing)}: not limited in flavor {flavor.name}"
            )
            notes.lenient("UnmeteredResource", f"{where}.resources", message)
        if listed != [name for name in covered if name in listed]:
            message = "lists resources in another order than coveredResources; matched by name"
            notes.lenient("ResourceOrder", f"{where}.resources", message)


def _check_listed(
    group: ResourceGroup, quotas: Sequence[ResourceQuota], at: str, notes: Notes
) -> None:
    """Report quota for a resource that the group does not cover, or twice for one."""
    covered = covered_resources(group)
    seen: set[str] = set()
    for index, quota in enumerate(quotas):
        path = f"{at}.resources[{index}].name"
        if quota.name not in covered:
            notes.problem(path, f'"{quota.name}" is not in coveredResources')
        if quota.name in seen:
            notes.problem(path, f'"{quota.name}" stands twice')
        seen.add(quota.name)


def _names(quotas: Iterable[ResourceQuota]) -> list[str]:
    return [quota.name for quota in quotas]


def _quotas_with_paths(group: ResourceGroup, at: str) -> Iterable[tuple[str, ResourceQuota]]:
    for index, quota in enumerate(group.resources):
        yield f"{at}.resources[{index}]", quota
    for number, flavor in enumerate(group.flavors):
        if isinstance(flavor, FlavorQuotas):
            for index, quota in enumerate(flavor.resources):
                yield f"{at}.flavors[{number}].resources[{index}]", quota


def _check_quota(quota: ResourceQuota, at: str, notes: Notes, *, is_queue: bool) -> None:
    for field, amount in _fields(quota):
        if amount.nano < 0:
            notes.problem(f"{at}.{field}", f"is {amount.text}; it cannot be negative")
    lending, nominal = quota.lending_limit, quota.nominal_quota
    if is_queue and lending is not None and lending.nano > nominal.nano:
        message = f"is {lending.text}; a queue cannot lend more than its quota, {nominal.text}"
        notes.problem(f"{at}.lendingLimit", message)


def _fields(quota: ResourceQuota) -> Iterable[tuple[str, Quantity]]:
    yield "nominalQuota", quota.nominal_quota
    if quota.borrowing_limit is not None:
        yield "borrowingLimit", quota.borrowing_limit
    if quota.lending_limit is not None:
        yield "lendingLimit", quota.lending_limit


def _check_limits(
    quota: ResourceQuota, at: str, notes: Notes, *, parent: str, parent_field: str
) -> None:
    if parent:
        return
    for field, _ in _fields(quota):
        if field != "nominalQuota":
            message = f"has no effect without {parent_field}; ignored"
            notes.lenient("LimitWithoutCohort", f"{at}.{field}", message)


# ---- engine values -------------------------------------------------------------------------------


def groups_of(
    groups: Sequence[ResourceGroup], *, has_parent: bool
) -> tuple[engine.ResourceGroup, ...]:
    """Return the engine's form of groups that passed `check_groups`."""
    return tuple(_group(group, has_parent=has_parent) for group in groups)


def _group(group: ResourceGroup, *, has_parent: bool) -> engine.ResourceGroup:
    covered = tuple(ResourceName(name) for name in covered_resources(group))
    pooled = is_pool(group)
    flavors = tuple(
        engine.FlavorQuota(FlavorName(flavor))
        if isinstance(flavor, str)
        else engine.FlavorQuota(
            FlavorName(flavor.name), _in_order(flavor.resources, covered, has_parent=has_parent)
        )
        for flavor in group.flavors
    )
    pool = _in_order(group.resources, covered, has_parent=has_parent) if pooled else None
    return engine.ResourceGroup(covered=covered, flavors=flavors, pool=pool)


def _in_order(
    quotas: Iterable[ResourceQuota], covered: tuple[ResourceName, ...], *, has_parent: bool
) -> tuple[engine.ResourceQuota, ...]:
    """Convert quotas, in the order of the covered resources."""
    made = {quota.name: _quota(quota, has_parent=has_parent) for quota in quotas}
    return tuple(made[name] for name in covered if name in made)


def _quota(quota: ResourceQuota, *, has_parent: bool) -> engine.ResourceQuota:
    def limit(amount: Quantity | None) -> int | None:
        return amount.amount(quota.name) if amount is not None and has_parent else None

    return engine.ResourceQuota(
        resource=ResourceName(quota.name),
        nominal=quota.nominal_quota.amount(quota.name),
        borrowing_limit=limit(quota.borrowing_limit),
        lending_limit=limit(quota.lending_limit),
    )
