"""Upstream operators that run on a cluster, found by their Deployments.

Where one runs, ours for the same kinds steps aside; the queueing of those kinds stays ours, through
their `suspend`. Kueue is different: it would write to the very queues and workloads that we do, so
there is no working beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from unisono.control.actions import Json
from unisono.control.conditions import seconds

KUEUE = "kueue"

# Names of images, and the operator each stands for: names of `assembly.OPERATORS`, or Kueue.
_BY_IMAGE = {
    "kueue": KUEUE,
    "jobset": "jobset",
    "trainer-controller-manager": "trainer",
    "training-operator": "kubeflow",
    "mpi-operator": "kubeflow",
    "vc-controller-manager": "volcano",
    "vc-scheduler": "volcano",
}
# And what a Deployment is called, for images that were renamed on their way to a private registry.
_BY_NAME = {
    "kueue-controller-manager": KUEUE,
    "jobset-controller-manager": "jobset",
    "kubeflow-trainer-controller-manager": "trainer",
    "training-operator": "kubeflow",
    "mpi-operator": "kubeflow",
    "volcano-controllers": "volcano",
    "volcano-scheduler": "volcano",
    "kuberay-operator": "ray",
}


# And the Leases of those that may run without one: outside of the cluster, or under another kind.
_BY_LEASE = {"c1f6bfd2.kueue.x-k8s.io": KUEUE, "ray-operator-leader": "ray"}
# A holder that has not renewed its lease for so long is gone: four times what is usual.
_LEASE_S = 60.0


class Upstream(NamedTuple):
    """An upstream operator that runs: which, and where."""

    operator: str
    deployment: str  # namespace/name, or `lease namespace/name`


def upstream_operators(deployments: Iterable[Json]) -> Sequence[Upstream]:
    """Return the operators among Deployments that are meant to run, in order of their names."""
    found = set()
    for one in deployments:
        operator = _operator_of(one)
        if operator and (one.get("spec") or {}).get("replicas", 1) > 0:
            metadata = one["metadata"]
            found.add(Upstream(operator, f"{metadata['namespace']}/{metadata['name']}"))
    return sorted(found)


def holders_of_leases(leases: Iterable[Json], now: float) -> Sequence[Upstream]:
    """Return the operators that keep a lease, in order of their names."""
    found = set()
    for one in leases:
        metadata, spec = one["metadata"], one.get("spec") or {}
        operator = _BY_LEASE.get(metadata["name"])
        renewed = spec.get("renewTime")
        if (
            operator
            and spec.get("holderIdentity")
            and renewed
            and now - seconds(renewed) < _LEASE_S
        ):
            place = f"lease {metadata['namespace']}/{metadata['name']}"
            found.add(Upstream(operator, place))
    return sorted(found)


def _operator_of(deployment: Json) -> str:
    named = _BY_NAME.get(deployment["metadata"]["name"], "")
    if named:
        return named
    template = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in template.get("containers") or ():
        repository = str(container.get("image", "")).partition("@")[0]
        path, _, last = repository.rpartition("/")
        image = last.partition(":")[0]
        if image in _BY_IMAGE:
            return _BY_IMAGE[image]
        if path.endswith("kuberay") and image == "operator":
            return "ray"
    return ""
