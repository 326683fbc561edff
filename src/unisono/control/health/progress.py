"""Progress of a training program: its reports, a pod's annotation, and what a gang has reached.

    program ──a line of JSON──▶ its kubelet ──annotation of the pod──▶ watchdog ──▶ the Workload

A line has `step` and, if the program likes, `total`, `loss`, `checkpoint_step`, `step_seconds` and
`time` (jobs §7.3). All three forms have the same keys, so that one reader does for all of them.

`step_seconds` is how long the rank itself worked on its last step, without waiting for the others:
only that distinguishes a slow rank from the ranks that wait for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from unisono.control.conditions import seconds, timestamp
from unisono.kinds.json_texts import read_json
from unisono.kinds.pace import MOST_STEPS, PROGRESS

# As many durations of a gang's steps are remembered; the median of so few ignores an odd one.
_MOST_PACES = 5

__all__ = ["PROGRESS", "Progress", "after", "furthest", "of_rank", "progress_of", "read"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The step that a rank or a gang has reached, and when."""

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
        report = read_json(text) if text else None
        if not isinstance(report, dict):
            return None
        loss = float(report["loss"]) if report.get("loss") is not None else None
        return Progress(
            step=int(report["step"]),
            at=timestamp(at) if at else str(report["at"]),
            total=int(report.get("total") or 0),
            checkpoint_step=int(report.get("checkpoint_step") or 0),
            saved_at=str(report.get("saved_at") or ""),
            loss=loss if loss is not None and math.isfinite(loss) else None,
            paces=tuple(_paces(report))[-MOST_STEPS:],
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _paces(report: Mapping[str, object]) -> list[float]:
    """Return the durations of steps that a report names: ours has several, a program's one."""
    raw = report.get("paces") or [report.get("step_seconds")]
    found = raw if isinstance(raw, list) else []
    times = [float(one) for one in found if isinstance(one, int | float)]
    return [round(one, 3) for one in times if math.isfinite(one) and one > 0]


def furthest(reports: Sequence[Progress]) -> Progress:
    """Return what a gang has reached: its first report of the highest step."""
    best = max(reports, key=lambda one: (one.step, -one.when))
    saved = max(one.checkpoint_step for one in reports)
    return replace(best, checkpoint_step=saved)


def after(before: Progress | None, now: Progress) -> Progress:
    """Return what is remembered of a gang: where it is, and how long its steps took lately."""
    if before is None:
        return replace(now, saved_at=now.at if now.checkpoint_step else "", paces=())
    has_saved = now.checkpoint_step > before.checkpoint_step
    now = replace(
        now,
        checkpoint_step=max(now.checkpoint_step, before.checkpoint_step),
        saved_at=now.at if has_saved else before.saved_at,
        paces=before.paces,
    )
    if now.step == before.step:  # a repeated report is no progress
        return replace(now, at=before.at)
    pace = round((now.when - before.when) / (now.step - before.step), 3)
    # Fewer steps than before: it began anew, perhaps from a checkpoint.
    return replace(now, paces=(*now.paces, pace)[-_MOST_PACES:]) if pace > 0 else now


def of_rank(before: Progress | None, now: Progress) -> Progress:
    """Return what is remembered of one rank: its own step times, else by the clock."""
    if before is None:
        return now
    paces = now.paces
    if not paces and now.step > before.step and now.when > before.when:
        paces = (round((now.when - before.when) / (now.step - before.step), 3),)
    return replace(now, paces=(*before.paces, *paces)[-MOST_STEPS:])
