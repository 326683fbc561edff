"""Volcano's queues as a tree: which stand below which, and what the tree asks of each of them.

Every queue but `root` has a parent, `root` if it names none. Only leaves take jobs. Along the tree
a queue's `capability` is at most that of the nearest queue above that has one, and what the
children of a queue have as `deserved` and as `guarantee` adds up to no more than its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.volcano.queues import ROOT, Queue, QueueSpec

# How many levels there may be below the root; Volcano's own default.
MAX_DEPTH = 5
_LISTS = ("deserved", "guarantee")


@dataclass(frozen=True, slots=True)
class QueueTree:
    """All queues by name, and the names of those directly below each."""

    queues: Mapping[str, Queue]
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(queues: Iterable[Queue]) -> QueueTree:
        """Put queues in order; of two with one name the last counts."""
        by_name = {one.metadata.name: one for one in queues}
        children: dict[str, list[str]] = {}
        for name in sorted(by_name):
            if name != ROOT:
                children.setdefault(parent_of(by_name[name]), []).append(name)
        return QueueTree(by_name, {name: tuple(below) for name, below in children.items()})

    def above(self, name: str) -> Iterator[str]:
        """Yield the queues above one, the nearest first; `root` last, if it is reached."""
        seen = {name}
        while name != ROOT and name in self.queues:
            name = parent_of(self.queues[name])
            if name in seen:
                return  # a circle
            seen.add(name)
            yield name

    def below(self, name: str) -> Iterator[str]:
        """Yield all queues below one."""
        ahead = list(self.children.get(name, ()))
        seen = {name}
        while ahead:
            found = ahead.pop()
            if found not in seen:
                seen.add(found)
                yield found
                ahead.extend(self.children.get(found, ()))


def parent_of(queue: Queue) -> str:
    """Return the name of the queue above."""
    return queue.spec.parent or ROOT


def check_in_tree(queue: Queue, others: Iterable[Queue], notes: Notes, *, moves: bool) -> None:
    """Report what Volcano refuses in a queue because of the others; `moves`: its parent is new."""
    name = queue.metadata.name
    if name == ROOT:
        return
    tree = QueueTree.of([*(one for one in others if one.metadata.name != name), queue])
    parent = parent_of(queue)
    if moves and parent != ROOT:
        _check_place(queue, tree, notes)
    if parent != ROOT and parent in tree.queues:
        _check_sums(parent, tree, notes)
        _check_below_capability(queue, tree, notes)
    if tree.children.get(name):
        _check_sums(name, tree, notes)
        for below in tree.below(name):
            _check_below_capability(tree.queues[below], tree, notes)


def _check_place(queue: Queue, tree: QueueTree, notes: Notes) -> None:
    parent = parent_of(queue)
    if parent not in tree.queues:
        notes.problem("spec.parent", f'there is no queue "{parent}"')
        return
    depth = sum(1 for _ in tree.above(queue.metadata.name))
    if ROOT not in tree.above(queue.metadata.name):
        notes.problem("spec.parent", "makes a circle of queues")
    elif depth > MAX_DEPTH:
        message = f"makes {depth} levels of queues; {MAX_DEPTH} is the most"
        notes.problem("spec.parent", message)
    elif len(tree.children[parent]) == 1 and (pods := allocated_pods(tree.queues[parent])):
        message = f'queue "{parent}" has {pods} pods of its own; only queues without pods can be'
        notes.problem("spec.parent", f"{message} parents")


def allocated_pods(queue: Queue) -> int:
    """Return how many pods of a queue's own run."""
    pods = queue.status.allocated.get("pods")
    return pods.units if pods is not None else 0


def _amounts(spec: QueueSpec, part: str) -> Mapping[str, Quantity]:
    return spec.guarantee.resource if part == "guarantee" else spec.deserved


def _check_sums(parent: str, tree: QueueTree, notes: Notes) -> None:
    """Report what the children of a queue have in all, if that is more than it has itself."""
    for part in _LISTS:
        own = _amounts(tree.queues[parent].spec, part)
        sums: dict[str, int] = {}
        for child in tree.children[parent]:
            for resource, quantity in _amounts(tree.queues[child].spec, part).items():
                sums[resource] = sums.get(resource, 0) + quantity.nano
        for resource, total in sorted(sums.items()):
            most = own.get(resource)
            if total > (most.nano if most is not None else 0):
                has = f"its {part} is {most.text}" if most is not None else f"it has no {part}"
                message = f"the {part} of queue {parent}'s children adds up to more {resource}"
                notes.problem(f"spec.{part}[{resource}]", f"{message} than its own: {has}")


def _check_below_capability(queue: Queue, tree: QueueTree, notes: Notes) -> None:
    name = queue.metadata.name
    for resource, quantity in sorted(queue.spec.capability.items()):
        for above in tree.above(name):
            most = tree.queues[above].spec.capability.get(resource) if above != ROOT else None
            if most is None or not most.nano:
                continue
            if quantity.nano > most.nano:
                message = f"queue {name} has {quantity.text}, more than the capability of queue"
                path = f"spec.capability[{resource}]"
                notes.problem(path, f"{message} {above} above it, {most.text}")
            break
