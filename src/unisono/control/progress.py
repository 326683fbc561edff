"""How far a program is: what it reports, what a pod says of it, and what a gang has reached.

    program ──a line of JSON──▶ its kubelet ──annotation of the pod──▶ watchdog ──▶ the Workload

A line has `step` and, if the program likes, `total`, `loss`, `checkpoint_step` and `time` (jobs
§7.3). All three forms have the same keys, so that one reader does for all of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from unisono.control.conditions import seconds, timestamp

PROGRESS = "unisono.dev/progress"
# As many durations of steps are remembered; the median of so few already ignores an odd one.
_MOST_PACES = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far somebody is, and when they got there."""

    step: int
    at: str  # when this step was reported
    total: int = 0  # 0: not known
    checkpoint_step: int = 0
    saved_at: str = ""  # when that checkpoint was reported
    loss: float | None = None
    paces: tuple[float, ...] = ()  # seconds for a step, lately

    @property
    def when(self) -> float:
        """The time of the report."""
        return seconds(self.at)

    @property
    def step_seconds(self) -> float:
        """How long a step takes; 0 if that is not known yet."""
        return median(self.paces) if self.paces else 0.0

    def text(self) -> str:
        """Write it as an annotation."""
        written: dict[str, object] = {"step": self.step}
        if self.total:
            written["total"] = self.total
        if self.checkpoint_step:
            written["checkpoint_step"] = self.checkpoint_step
        if self.saved_at:
            written["saved_at"] = self.saved_at
        if self.loss is not None:
            written["loss"] = self.loss
        if self.paces:
            written["paces"] = list(self.paces)
        return json.dumps({**written, "at": self.at}, separators=(",", ":"))


def progress_of(annotations: Mapping[str, str] | None) -> Progress | None:
    """Read an annotation; None if there is none that can be read."""
    return read(annotations.get(PROGRESS, "") if annotations else "")


def read(text: str, at: float = 0.0) -> Progress | None:
    """Read a report; `at` is when it was made, if it does not say so itself as we write it."""
    try:
        said = json.loads(text) if text else None
        if not isinstance(said, dict):
            return None
        loss = float(said["loss"]) if said.get("loss") is not None else None
        return Progress(
            step=int(said["step"]),
            at=timestamp(at) if at else str(said["at"]),
            total=int(said.get("total") or 0),
            checkpoint_step=int(said.get("checkpoint_step") or 0),
            saved_at=str(said.get("saved_at") or ""),
            loss=loss if loss is not None and math.isfinite(loss) else None,
            paces=tuple(float(one) for one in said.get("paces") or ())[-_MOST_PACES:],
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def furthest(reports: Sequence[Progress]) -> Progress:
    """Return what a gang has reached: its first report of the highest step."""
    best = max(reports, key=lambda one: (one.step, -one.when))
    saved = max(one.checkpoint_step for one in reports)
    return replace(best, checkpoint_step=saved)


def after(before: Progress | None, now: Progress) -> Progress:
    """Return what is remembered of a gang: where it is, and how long its steps took lately."""
    if before is None:
        return replace(now, saved_at=now.at if now.checkpoint_step else "")
    has_saved = now.checkpoint_step > before.checkpoint_step
    now = replace(
        now,
        checkpoint_step=max(now.checkpoint_step, before.checkpoint_step),
        saved_at=now.at if has_saved else before.saved_at,
        paces=before.paces,
    )
    if now.step == before.step:  # whoever repeats itself has not moved
        return replace(now, at=before.at)
    pace = round((now.when - before.when) / (now.step - before.step), 3)
    # Fewer steps than before: it began anew, perhaps from a checkpoint.
    return replace(now, paces=(*now.paces, pace)[-_MOST_PACES:]) if pace > 0 else now
