"""How busy GPUs were, as a Prometheus remembers it: for the ledger of a real cluster.

A stretch of time is asked about once, when all of it has been scraped, and the answer is laid on
the pods that ran then, also on those that are over by now. What was not scraped is not covered:
it counts as unmeasured, not as idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from unisono.engine.model.errors import UnisonoError
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.recorder import GpuUse
from unisono.monitor.ledger.rows import PodRow


class PrometheusError(UnisonoError):
    """It cannot be reached, refuses, or does not answer like a Prometheus."""


class Series(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


# Between two points of a series; no exporter is scraped much more often.
STEP_SECONDS = 15
_IDLE = 0.05  # a device that is less busy than that is not used
# The better measure where there is one: a rank that spins in a collective is 100 % "utilised".
_BUSY = (
    'DCGM_FI_PROF_SM_ACTIVE{pod!=""} or DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod!=""}'
    ' or DCGM_FI_DEV_GPU_UTIL{pod!=""} / 100'
)
# Where honorLabels is off, `pod` is the exporter's own and the holder has these names.
_EXPORTED = ("exported_namespace", "exported_pod")
_BY = "by (namespace, pod, exported_namespace, exported_pod)"

PodName = tuple[str, str]  # namespace, name


class Asks(Protocol):
    """Answers queries."""

    def query(self, expression: str, at: int) -> list[Series]:
        """Return the series of an expression at a time."""
        ...


def measured(prometheus: Asks, period: Period, pods: Iterable[PodRow]) -> dict[str, GpuUse]:
    """Return what the devices of pods did in a period, by uid."""
    by_name: dict[PodName, list[PodRow]] = {}
    for pod in pods:
        if _ran(pod, period):
            by_name.setdefault((pod.namespace, pod.name), []).append(pod)
    if not by_name:
        return {}
    window = f"[{period.seconds}s:{STEP_SECONDS}s]"
    questions = {
        "busy": f"sum {_BY} (sum_over_time(({_BUSY}){window}))",
        "covered": f"sum {_BY} (count_over_time(({_BUSY}){window}))",
        "idle": f"count {_BY} (avg_over_time(({_BUSY}){window}) < {_IDLE})",
        "tensor": f"sum {_BY} (sum_over_time("
        f'(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{pod!=""}}){window}))',
        "peak": f'max {_BY} (max_over_time(DCGM_FI_DEV_FB_USED{{pod!=""}}[{period.seconds}s]))',
    }
    answers = {
        name: _by_pod(prometheus.query(expression, period.until))
        for name, expression in questions.items()
    }
    found: dict[str, GpuUse] = {}
    for name, rows in by_name.items():
        if name in answers["covered"]:
            told = {question: answer.get(name, 0.0) for question, answer in answers.items()}
            found.update(_laid_on(rows, period, told))
    return found


def _laid_on(
    rows: Sequence[PodRow], period: Period, told: Mapping[str, float]
) -> Iterable[tuple[str, GpuUse]]:
    """Share an answer among pods of one name: one may have followed another."""
    ran = [_ran(one, period) for one in rows]
    for row, seconds in zip(rows, ran, strict=True):
        part = seconds / sum(ran)
        covered = told["covered"] * STEP_SECONDS * part
        # A series outlives its pod for a little; a pod is never measured longer than it ran.
        factor = min(1.0, seconds * row.gpus / covered) if covered else 0.0
        use = GpuUse(
            busy=min(told["busy"] * STEP_SECONDS * part, covered) * factor,
            tensor=told["tensor"] * STEP_SECONDS * part * factor,
            covered=covered * factor,
            idle_devices=min(row.gpus, round(told["idle"])),
            peak_mib=int(told["peak"]),
        )
        yield row.uid, use


def _ran(pod: PodRow, period: Period) -> int:
    return period.clip(pod.started, pod.ended).seconds if pod.started else 0


def _by_pod(series: Iterable[Series]) -> dict[PodName, float]:
    found: dict[PodName, float] = {}
    for labels, value in series:
        exported = tuple(labels.get(one, "") for one in _EXPORTED)
        plain = labels.get("namespace", ""), labels.get("pod", "")
        name = exported if all(exported) else plain
        found[name[0], name[1]] = found.get((name[0], name[1]), 0.0) + value
    return found
