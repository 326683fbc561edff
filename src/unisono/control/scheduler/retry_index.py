"""Who waits for nodes beside the queues, and how nodes stood when that was last tried."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.control import names
from unisono.control.actions import Json, Note, Ref, Steps
from unisono.control.view import View
from unisono.engine.model.names import WorkloadKey
from unisono.engine.state.cluster import ClusterState
from unisono.kube.form import Key


class Untried:
    """Holders of quota that somebody looks at again only when nodes have changed."""

    def __init__(self, state: ClusterState) -> None:
        """Begin with nobody."""
        self._state = state
        self._tried: dict[Key, int | None] = {}
        self._at: Key | None = None  # the one that was yielded last

    def note(self, key: Key, *, waits: bool) -> None:
        """Take somebody in, to be looked at anew; or let them go."""
        if waits:
            self._tried[key] = None
        else:
            self._tried.pop(key, None)

    def due(self, view: View) -> Iterator[tuple[Key, Json, WorkloadKey]]:
        """Yield who was not tried on the nodes as they are now."""
        for key in list(self._tried):
            workload = view.peek(names.WORKLOAD, key.name, key.namespace)
            own = WorkloadKey(f"{key.namespace}/{key.name}")
            if workload is None or own not in self._state.running:
                continue
            if self._tried[key] != self._state.nodes.occupancy.moves:
                self._at = key
                yield key, workload, own

    def tried(self, key: Key) -> None:
        """Remember how nodes are now."""
        self._tried[key] = self._state.nodes.occupancy.moves

    def gave_up(self, view: View, problem: str) -> Steps:
        """Pass over the workload that was yielded last until nodes change, and tell its owner."""
        key = self._at
        if key is None:
            return
        self.tried(key)
        workload = view.peek(names.WORKLOAD, key.name, key.namespace)
        if workload is not None:
            message = f"could not find nodes for it: {problem}; tried again when nodes change"
            yield Note(Ref.to(workload), "Quarantined", message, "Warning")
