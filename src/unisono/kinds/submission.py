"""What can be said of a job at the moment it is submitted, from configuration alone.

Nothing is decided here: the engine is asked what it would say of this one job in a cluster where
nothing else runs and nodes do not matter. What it refuses even then will never start, as things
are now. The API turns that into a warning, so that no workload waits unexplained.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unisono.engine.model.names import Instant
from unisono.engine.model.selection import selects
from unisono.kinds.decode import decode
from unisono.kinds.policy.schema import Policy
from unisono.kinds.policy.settings import DEFAULTS, Settings, settings_of
from unisono.kinds.registry import Context, Kind
from unisono.kinds.selectors import LabelSelector, selector_of
from unisono.kinds.snapshot.build import read_world

# What time alone does not change.
_LASTING = ("ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured")


def counting_policy(policies: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the Policy that counts if there are several: the first by name."""
    return min(policies, key=lambda one: str(one["metadata"]["name"]), default=None)


def settings_from(policy: Mapping[str, Any] | None) -> Settings:
    """Return the operator's choices; a policy that cannot be read counts as none."""
    if policy is None:
        return DEFAULTS
    manifest, _ = decode(Policy, policy, ignore_unknown=True)
    return settings_of(None, manifest)


def is_managed(settings: Settings, namespace_labels: Mapping[str, str]) -> bool:
    """Say whether jobs of a namespace are ours at all."""
    return selects(settings.managed_namespaces, dict(namespace_labels))


def is_selected(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Say whether labels satisfy a selector; one that cannot be read refuses none."""
    manifest, _ = decode(LabelSelector, selector, ignore_unknown=True)
    return manifest is None or selects(selector_of(manifest), dict(labels))


def total_requests(kind: Kind, manifest: Any, context: Context) -> dict[str, int]:
    """Return what all pods of a job ask for together, as quota is charged; empty for no job."""
    totals: dict[str, int] = {}
    for one in kind.job.pod_sets(manifest, context) if kind.job is not None else ():
        for resource, amount in one.requests:
            totals[resource] = totals.get(resource, 0) + amount * one.count
    return totals


def why_never(documents: Sequence[Mapping[str, Any]], *, now: Instant) -> str:
    """Return why the only job among the documents could not start in an empty cluster.

    Empty if it could, or if the documents do not say enough.
    """
    # Only here: an API that has just started answers before the engine is loaded.
    from unisono.engine.cluster import restore
    from unisono.engine.dry_run import one_cycle
    from unisono.engine.explain.messages import message_of, reason_of
    from unisono.engine.explain.waiting import explanations

    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    world = read_world([("cluster", json.dumps(listed).encode())], now=now)
    if world.problems:
        return ""
    state = restore(world.snapshot)
    one_cycle(state, now, checked=False)
    for why in explanations(state):
        if reason_of(why) in _LASTING:
            return message_of(why)
    return ""
