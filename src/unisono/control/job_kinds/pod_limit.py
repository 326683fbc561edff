"""How many objects an operator makes for one job: as many as the cluster can use, some at a time.

What a queue has admitted fits the cluster, whatever its manifest says. What runs in no queue was
never counted: its numbers are those of a manifest, and 2147483647 is a number, too. So such a
job gets pods only as far as the nodes of the whole cluster could take them, and one that asks for
more waits with an event that says so. A Job's pods are of use one by one, so it runs with fewer of
them, unless it asks for many times what there is; the pods of all other kinds need each other and
come whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from unisono.control import names
from unisono.control.actions import Again, Breathe, Create, Json, Note, Ref, Steps, Together
from unisono.control.view import View
from unisono.engine.model.names import PODS
from unisono.engine.model.resources import bounded
from unisono.kinds.quantity import Quantity

# Objects of one job that are made before others have a turn: what the Job controller of Kubernetes
# makes in one go, and a fraction of a second of the API's time.
AT_ONCE = 500
# As many pods as this may always be made. A cluster may have no nodes yet because an autoscaler
# brings them when pods wait, and a thousand pods cost a few megabytes.
ALWAYS = 1_000
# A Job may ask for so many times what there is before none of it is made: nodes come and go, and
# people let sweeps of ten thousand runs trickle through a small cluster.
TIMES_TOO_MANY = 10
# Child Jobs that are made, suspended, of a JobSet that waits: enough to see what there will be.
HELD = 100
# Seconds after which a job that asks for too much is looked at again: nodes may have come.
LOOK_AGAIN = 300.0

# Characters that all names of hosts have together, in one list. A ConfigMap and a Secret hold a
# mebibyte, and some list every host twice; with names of forty characters it is ten thousand hosts.
LISTED = 400_000

TOO_MANY = "TooManyPods"
# Kubernetes' default, for nodes that do not say how many pods they take.
_DEFAULT_PODS = 110


def most_pods(job: Json, wanted: int, templates: Iterable[Json], view: View) -> int:
    """Return how many of the wanted pods may exist; nodes are only counted if that matters.

    If a template names a Workload that was admitted, all of its pods may, wherever its nodes are.
    """
    if wanted <= ALWAYS:
        return wanted
    namespace = job["metadata"]["namespace"]
    admitted = max((_admitted(one, namespace, view) for one in templates), default=0)
    return min(wanted, max(ALWAYS, _slots(view), admitted))


def too_many(job: Json, wanted: int, view: View, now: float) -> Steps:
    """Say that a job asks for more pods than there can be, and look again later."""
    slots = _slots(view)
    message = (
        f"asks for {wanted} pods at once; all nodes of this cluster together take {slots}, and what"
        f" no queue admitted gets {max(ALWAYS, slots)} at most: no more are made. Ask for fewer"
    )
    yield Note(Ref.to(job), TOO_MANY, message, "Warning")
    yield Again(now + LOOK_AGAIN)


def made(objects: Iterable[Json]) -> Steps:
    """Create objects, some at a time; they are worked out only then, and others have a turn."""
    rest = iter(objects)
    while batch := list(islice(rest, AT_ONCE)):
        yield Together([Create(obj) for obj in batch])
        if len(batch) == AT_ONCE:
            yield Breathe()


def nameable(count: int, longest: int) -> int:
    """Return how many of so many hosts a list can name, given the length of the longest name."""
    return min(count, LISTED // (longest + 1))


def _slots(view: View) -> int:
    """Return how many pods all nodes take together."""
    return sum(map(_pods_of, view.all(names.NODE)))


def _pods_of(node: Json) -> int:
    written = ((node.get("status") or {}).get("allocatable") or {}).get("pods", _DEFAULT_PODS)
    try:
        pods = Quantity.from_raw(written).units
    except ValueError:
        return 0
    return bounded(PODS, pods)


def _admitted(template: Json, namespace: str, view: View) -> int:
    """Return how many pods the Workload has that a template was injected for."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    name = annotations.get(names.WORKLOAD_ANNOTATION)
    workload = view.peek(names.WORKLOAD, name, namespace) if isinstance(name, str) else None
    admission = ((workload or {}).get("status") or {}).get("admission") or {}
    return sum(one.get("count", 0) for one in admission.get("podSetAssignments") or ())
