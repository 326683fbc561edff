"""What ends a mismatch, as actions: for `unisono slurm doctor --fix`.

| class | remedy |
| --- | --- |
| `deadlock`, `phantom` | the job's nodes are taken back: requeued and held, with the reason |
| `orphan` | the pods go; so does the gang |
| `double` | the newest of the jobs is taken back |
| `over-belief` | a job of ours occupies what Kubernetes has given to others |
| `state` | the node is drained, or a drain of ours is taken off |
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.slurm.bridge.actions import Action, DropGang, FreePod, Occupy, Park, TakeBack
from unisono.slurm.bridge.cluster_view import Truth
from unisono.slurm.bridge.decide import Terms, retry_after
from unisono.slurm.bridge.mismatch import Mismatch
from unisono.slurm.bridge.nodes import state_of
from unisono.slurm.bridge.slurm_view import Belief


def remedies(
    found: Mismatch, belief: Belief, truth: Truth, terms: Terms, now: float
) -> Iterator[Action]:
    """Yield what ends one mismatch."""
    match found.sort:
        case "deadlock":
            yield from _take_back(found, belief, truth, terms, now, is_deadlock=True)
        case "phantom":
            yield from _take_back(found, belief, truth, terms, now)
        case "double":
            yield TakeBack(belief.jobs[found.jobs[0]], found.text)
        case "over-belief":
            yield Occupy(found.node, found.slurm - max(0, found.kubernetes))
        case "state":
            yield from state_of(belief.nodes[found.node], truth.nodes.get(found.node))
        case "orphan":
            gang = truth.gangs.get(found.jobs[0])
            if gang is not None:
                yield DropGang(gang, found.text)
            yield from _pods(found, truth)


def _take_back(
    found: Mismatch,
    belief: Belief,
    truth: Truth,
    terms: Terms,
    now: float,
    *,
    is_deadlock: bool = False,
) -> Iterator[Action]:
    key = found.jobs[0]
    yield TakeBack(belief.jobs[key], found.text, is_deadlock=is_deadlock)
    gang = truth.gangs.get(key)
    if gang is not None:
        yield Park(gang, now + retry_after(gang.tries, terms), found.text)
    else:
        yield from _pods(found, truth)  # whoever made them makes them again when the job starts


def _pods(found: Mismatch, truth: Truth) -> Iterator[Action]:
    wanted = set(found.pods)
    for pod in truth.pods:
        if f"{pod.namespace}/{pod.name}" in wanted:
            yield FreePod(pod)
