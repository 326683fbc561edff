"""What happened to pods, read from the log of a cluster's file while it is not open.

Every change that was ever acknowledged is in it, in order. The promises about gangs are checked
against that, not against what some client happened to see.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from unisono.kube.form import Json

_WORKLOAD = "kueue.x-k8s.io/workload"
_INDEXES = (
    "batch.kubernetes.io/job-completion-index",
    "volcano.sh/task-index",
    "training.kubeflow.org/replica-index",
)


@dataclass(slots=True)
class Life:
    """What is known of one pod, by its uid."""

    name: str
    gang: str
    place: str  # which of the gang's pods it is
    started: float | None = None
    ended: float | None = None
    restarts: int = 0
    has_succeeded: bool = False


@dataclass(slots=True)
class History:
    """Follows the log of a file over all restarts."""

    path: Path
    lives: dict[str, Life] = field(default_factory=dict)
    seen: int = 0
    changes: int = 0

    def read_on(self) -> None:
        """Take in what was written since the last look."""
        for version, kind, data in self._rows():
            assert version > self.seen, "versions only grow"
            self.seen = version
            self.changes += 1
            if kind == "/pods":
                self._pod(json.loads(data))

    def _rows(self) -> Iterator[tuple[int, str, bytes]]:
        with closing(sqlite3.connect(self.path)) as database:
            (floor,) = database.execute("SELECT min(rv) FROM log").fetchone()
            # Rows are trimmed only when there are tens of thousands: none may be missing here.
            assert not self.seen or floor is None or floor <= self.seen + 1, "the log has a gap"
            yield from database.execute(
                "SELECT rv, kind, data FROM log WHERE rv > ? ORDER BY rv", (self.seen,)
            )

    def _pod(self, pod: Json) -> None:
        metadata, status = pod["metadata"], pod.get("status") or {}
        texts = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
        gang = texts.get(_WORKLOAD, "")
        if not gang:
            return
        numbers = [texts[key] for key in _INDEXES if key in texts]
        role = texts.get("kueue.x-k8s.io/podset", "")
        place = f"{role}/{numbers[0]}" if numbers else f"{role}/{metadata['name']}"
        life = self.lives.setdefault(metadata["uid"], Life(metadata["name"], gang, place))
        for one in status.get("containerStatuses") or ():
            life.restarts = max(life.restarts, one.get("restartCount", 0))
            state = one.get("state") or {}
            for part, key in (("running", "startedAt"), ("terminated", "startedAt")):
                if at := (state.get(part) or {}).get(key):
                    began = seconds(at)
                    life.started = began if life.started is None else min(life.started, began)
            if at := (state.get("terminated") or {}).get("finishedAt"):
                life.ended = seconds(at)
        life.has_succeeded = life.has_succeeded or status.get("phase") == "Succeeded"

    # ---- what it proves ----------------------------------------------------------------------

    def gangs(self) -> dict[str, list[Life]]:
        """Return the pods that ever ran, by gang."""
        found: dict[str, list[Life]] = {}
        for life in self.lives.values():
            if life.started is not None:
                found.setdefault(life.gang, []).append(life)
        return found

    def overlaps(self) -> list[str]:
        """Return the places of gangs that two pods ran in at the same time, or after success."""
        found = []
        for gang, lives in self.gangs().items():
            places: dict[str, list[Life]] = {}
            for life in lives:
                places.setdefault(life.place, []).append(life)
            for place, several in places.items():
                several.sort(key=lambda life: life.started or 0.0)
                for first, second in itertools.pairwise(several):
                    is_over = first.ended is not None and first.ended <= (second.started or 0.0)
                    if first.has_succeeded or not is_over:
                        found.append(f"{gang} {place}: {first.name} and {second.name}")
        return found

    def longest_part(self, wanted: dict[str, int]) -> tuple[float, str]:
        """Return for how long a gang ran in part at its start, at most, and which one it was."""
        worst = (0.0, "")
        for gang, lives in self.gangs().items():
            starts = sorted(life.started for life in lives if life.started is not None)
            count = next((n for name, n in wanted.items() if f"-{name}-" in gang), 1)
            whole = starts[min(count, len(starts)) - 1]
            worst = max(worst, (whole - starts[0], gang))
        return worst


def seconds(text: str) -> float:
    """Read a time of a status."""
    return datetime.fromisoformat(text).timestamp()
