"""Places of a gang: which of them wait for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.control import names
from unisono.control.assembly import INDEXES
from unisono.control.gangs.slots import slots_of
from unisono.control.view import KindStore, View
from unisono.kinds.overriding import override
from unisono.kube.form import Json


def _pod(name: str, gen: int, phase: str = "Succeeded") -> Json:
    """Return a pod that a placement sent to n1."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": "1",
            "labels": {names.POD_SET_LABEL: "main"},
            "annotations": {names.SLOT: f"main/n1@{gen}", names.WORKLOAD_ANNOTATION: "job"},
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase},
    }


def _workload(gen: int, reclaimable: int) -> Json:
    placement = {
        "type": names.PLACEMENT,
        "status": "True",
        "reason": "Committing",
        "message": f"gen={gen}",
    }
    nodes = {"levels": [names.HOSTNAME], "domains": [{"values": ["n2"], "count": 3}]}
    done = [{"name": "main", "count": reclaimable}] if reclaimable else []
    return {
        "metadata": {"name": "job", "namespace": "default"},
        "status": {
            "conditions": [placement],
            "reclaimablePods": done,
            "admission": {
                "podSetAssignments": [{"name": "main", "count": 3, "topologyAssignment": nodes}]
            },
        },
    }


class _Pods(View):
    """A view of some pods and nothing else."""

    def __init__(self, pods: list[Json]) -> None:
        super().__init__(
            {kind: KindStore.of(kind, INDEXES.get(kind, {})) for kind in (names.NODE,)}
        )
        self._pods = pods

    @override
    def by(self, kind: Any, index: str, key: str) -> Any:
        return self._pods if kind == names.POD else super().by(kind, index, key)


@pytest.mark.parametrize(
    ("pods", "reclaimable", "empty"),
    [
        ([], 0, 3),
        ([_pod("a", 2)], 0, 2),  # of this placement: no other comes for its place
        ([_pod("a", 1), _pod("b", 1)], 0, 3),  # of an earlier one: the job makes three again
        ([_pod("a", 1), _pod("b", 1)], 2, 1),  # and here it makes one
        ([], 2, 1),
    ],
)
def test_places_that_wait_for_a_pod(pods: list[Json], reclaimable: int, empty: int) -> None:
    slots = slots_of(_workload(2, reclaimable), _Pods(pods))
    assert len(slots.free["main"]) == empty
