"""Unit tests of the alerts in promtool's own format: six for each, made from what it is about.

fires      all is well, then it is not, for long enough: one alert
quiet      all stays well
resolves   all is well again: no alert
first      the series begin with the first event: one alert
churn      meanwhile pods of a GPU change every four minutes, or the leader does: one alert
restart    meanwhile nothing is scraped for two minutes, and counters begin at 0: one alert
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from unisono.monitor.rules.alerts import ALERTS, Alert

if TYPE_CHECKING:
    from unisono.kube.form import Json

_STEP = 30  # seconds between two samples
_CHURN = 8  # samples: four minutes
_GAP = 4
_WELL = 10
_MARGIN = 6
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_DEVICE = 'gpu="0", UUID="GPU-a", kubernetes_node="n1"'
_OTHER = 'gpu="0", UUID="GPU-b", kubernetes_node="n2"'
_GANG = 'namespace="a", workload="w", queue="cq"'
_RANK = 'namespace="a", workload="w", rank="7", pod="p7", node="n8"'
_GPUS = 'resource="nvidia_com_gpu"'

_Phase = Literal["none", "well", "bad", "gap", "reset"]
_Timeline = Sequence[tuple[_Phase, int]]
ABSENT = "stale"


class Series(NamedTuple):
    """What is scraped: a value while all is well, and another while it is not.

    A counter grows by these at each sample, or once when `events` says how often; a clock is the
    time itself while all is well.
    """

    name: str
    labels: str
    well: float | str
    bad: float | str
    kind: Literal["gauge", "counter", "clock"] = "gauge"
    events: int = 0
    of_pod: bool = False  # carries the pod that has the device


class Situation(NamedTuple):
    """What an alert is about."""

    series: tuple[Series, ...]
    delay: int = 0  # seconds beyond `for` until it fires,
    lasting: int = 60  # and until it resolves
    is_of_pod: bool = False  # is about a pod, and so begins anew with another
    is_of_absence: bool = False  # fires because something is not there


def _device(name: str, well: float | str, bad: float | str) -> Series:
    return Series(name, _DEVICE, well, bad, of_pod=True)


def _always(name: str, labels: str, value: float) -> Series:
    return Series(name, labels, value, value)


def _health(name: str, bad: float) -> Situation:
    return Situation((Series(f"unisono_{name}", "", 0, bad),))


_POD_INFO = 'namespace="a", pod="{}", workload="w", queue="cq", user="kim"'
SITUATIONS: dict[str, Situation] = {
    "GPUHighTemperature": Situation((_device("DCGM_FI_DEV_GPU_TEMP", 60, 95),)),
    "GPUMemoryExhausted": Situation(
        (
            _device("DCGM_FI_DEV_FB_USED", 10_000, 80_000),
            _device("DCGM_FI_DEV_FB_FREE", 71_000, 1_000),
        )
    ),
    "GPUUnderutilized": Situation((_device("DCGM_FI_DEV_GPU_UTIL", 90, 3),)),
    "GPUAllocatedIdle": Situation(
        (
            _device("DCGM_FI_DEV_GPU_UTIL", 90, 1),
            *(_always("unisono_pod_info", _POD_INFO.format(f"p{at}"), 1) for at in range(40)),
        ),
        is_of_pod=True,
    ),
    "GPUXidCritical": Situation((_device("DCGM_FI_DEV_XID_ERRORS", 0, 79),)),
    "GPUXidOther": Situation((_device("DCGM_FI_DEV_XID_ERRORS", 0, 31),)),
    "GPUEccUncorrectable": Situation((_device("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0, 1),)),
    "GPURowRemapFailure": Situation((_device("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0, 1),)),
    "GPUThermalThrottling": Situation(
        (Series("DCGM_FI_DEV_THERMAL_VIOLATION", _DEVICE, 0, 2e10, kind="counter", of_pod=True),),
        delay=120,
        lasting=400,
    ),
    "GPULost": Situation(
        (
            _always("kube_node_status_capacity", f'node="n1", {_GPUS}', 8),
            Series("kube_node_status_allocatable", f'node="n1", {_GPUS}', 8, 7),
        )
    ),
    "GPUExporterDown": Situation((Series("up", 'job="dcgm"', 1, 0),)),
    "GPUMetricsMissing": Situation(
        (
            _always("kube_node_status_allocatable", f'node="n1", {_GPUS}', 1),
            _always("kube_node_status_allocatable", f'node="n2", {_GPUS}', 1),
            _always("DCGM_FI_DEV_GPU_TEMP", _OTHER, 40),
            _device("DCGM_FI_DEV_GPU_TEMP", 40, ABSENT),
        )
    ),
    "QuarantineLimitReached": Situation(
        (Series("unisono_node_quarantined", 'node="n1", reason="Xid79"', 1, 0),)
    ),
    "GPUMetricsUnattributed": Situation(
        (
            _always("unisono_pod_info", _POD_INFO.format("p"), 1),
            _always(
                "kube_pod_container_resource_limits",
                f'namespace="a", pod="p", node="n1", {_GPUS}',
                1,
            ),
            _always("kube_pod_status_phase", 'namespace="a", pod="p", phase="Running"', 1),
            Series("DCGM_FI_DEV_GPU_TEMP", f'{_DEVICE}, namespace="a", pod="p"', 40, ABSENT),
            Series("DCGM_FI_DEV_GPU_TEMP", _DEVICE, ABSENT, 40),
        )
    ),
    "GangWaitingTooLong": Situation(
        (
            Series("unisono_gang_pending_seconds", f'{_GANG}, reason="quota"', 10, 4_000),
            _always("unisono_queue_wait_slo_seconds", 'queue="cq"', 1_800),
        )
    ),
    "GangPartiallyRunning": Situation(
        (
            Series("unisono_gang_pods", f'{_GANG}, state="bound"', 2, 1),
            _always("unisono_gang_pods", f'{_GANG}, state="required"', 2),
        )
    ),
    "QuotaStarvation": Situation(
        (
            Series("unisono_queue_gpus", 'queue="a", flavor="f", kind="pending"', 0, 8),
            _always("unisono_queue_gpus", 'queue="a", flavor="f", kind="used"', 4),
            _always("unisono_queue_gpus", 'queue="a", flavor="f", kind="nominal"', 16),
        )
    ),
    "WorkloadCannotStart": Situation(
        (Series("unisono_unstartable_workloads", 'queue="a", reason="ExceedsMaxQuota"', 0, 2),)
    ),
    "StragglerDetected": Situation((Series("unisono_straggler_score", _RANK, 1, 12),)),
    "GPUClockBelowGang": Situation(
        (
            *(
                _always(
                    "DCGM_FI_DEV_SM_CLOCK",
                    f'gpu="{at}", UUID="GPU-{at}", namespace="a", pod="q{at}"',
                    1_980,
                )
                for at in range(3)
            ),
            Series("DCGM_FI_DEV_SM_CLOCK", f'{_DEVICE}, namespace="a", pod="q3"', 1_980, 1_100),
            _always("DCGM_FI_DEV_GPU_UTIL", f'{_DEVICE}, namespace="a", pod="q3"', 97),
            *(_always("unisono_pod_info", _POD_INFO.format(f"q{at}"), 1) for at in range(4)),
        )
    ),
    "TrainingStalled": Situation(
        (
            Series("unisono_rank_last_step_timestamp_seconds", _RANK, 0, 0, kind="clock"),
            _always("unisono_workload_running", f'{_GANG}, kind="Job"', 1),
        ),
        delay=930,
    ),
    "RestartStorm": Situation(
        (
            Series(
                *("unisono_workload_restarts_total", f'{_GANG}, reason="NodeFailures"', 0, 1),
                kind="counter",
                events=3,
            ),
        ),
        lasting=3_700,
    ),
    "ProvisioningFailing": Situation(
        (
            Series(
                *("unisono_provision_plans_total", 'nodepool="gpu", result="failed"', 0, 1),
                kind="counter",
                events=3,
            ),
        ),
        lasting=1_900,
    ),
    "CapacityStockOut": Situation(
        tuple(
            Series(
                "unisono_offering_unavailable",
                f'instance_type="p5", zone="{zone}", capacity_type="spot"',
                *(0, 1),
            )
            for zone in "ab"
        )
    ),
    "PaidNodeIdle": Situation(
        (
            Series("unisono_node_idle_seconds", 'node="n1", instance_type="p5"', 0, 2_000),
            _always("unisono_node_price_usd_per_hour", 'node="n1", instance_type="p5"', 55),
        )
    ),
    "SpendAboveBudget": Situation(
        (
            Series("unisono_hourly_cost_usd", "", 10, 100),
            _always("unisono_hourly_cost_limit_usd", "", 50),
        )
    ),
    "SchedulerSlow": Situation(
        tuple(
            Series(
                *("unisono_cycle_duration_seconds_bucket", f'phase="total", le="{le}"', 10, bad),
                kind="counter",
            )
            for le, bad in (("1", 0), ("4", 10), ("+Inf", 10))
        ),
        delay=300,
        lasting=400,
    ),
    "ObjectsQuarantined": Situation(
        (Series("unisono_quarantined_objects", 'kind="Workload", stage="audit"', 0, 1),)
    ),
    "PlansRefused": Situation(
        (Series("unisono_refused_plans_total", "", 0, 1, kind="counter", events=1),), lasting=700
    ),
    "ControllersCrashing": Situation(
        (Series("unisono_controller_crashes_total", "", 0, 1, kind="counter"),),
        delay=400,
        lasting=700,
    ),
    "WorkloadUnexplained": _health("unexplained_seconds", 400),
    "SchedulerNotPlanning": _health("scheduler_behind_seconds", 100),
    "SchedulerNotWriting": _health("unwritten_seconds", 100),
    "SchedulerDown": Situation(
        (Series("unisono_build_info", 'version="1"', 1, ABSENT),), is_of_absence=True
    ),
}


def unit_tests(rules: str = "rules.yaml") -> Json:
    """Return what `promtool test rules` reads; `rules` is the file beside it."""
    return {
        "rule_files": [rules],
        "evaluation_interval": f"{_STEP}s",
        "tests": [test for alert in ALERTS for test in _tests(alert, SITUATIONS[alert.name])],
    }


def _tests(alert: Alert, about: Situation) -> Iterator[Json]:
    hold = (_seconds(alert.lasting) + about.delay) // _STEP + _MARGIN
    over = about.lasting // _STEP + _MARGIN
    well: tuple[_Phase, int] = ("well", _WELL)
    yield _test(alert, about, "fires", [well, ("bad", hold)], 1)
    yield _test(alert, about, "quiet", [("well", _WELL + hold)], 0)
    yield _test(alert, about, "resolves", [well, ("bad", hold), ("well", over)], 0)
    yield _test(alert, about, "first", [("none", _WELL), ("bad", hold)], 1)
    churn = [well, ("bad", 2 * max(hold, _CHURN))]
    yield _test(alert, about, "churn", churn, 0 if about.is_of_pod else 1, has_churn=True)
    restart: _Timeline = [well, ("bad", hold), ("gap", _GAP), ("reset", hold)]
    yield _test(alert, about, "restart", restart, 1)


def _test(
    alert: Alert,
    about: Situation,
    name: str,
    timeline: _Timeline,
    expected: int,
    *,
    has_churn: bool = False,
) -> Json:
    length = sum(count for _, count in timeline)
    series = [
        {"series": f"{one.name}{{{labels}}}", "values": _values(tokens)}
        for one in about.series
        for labels, tokens in _scraped(one, timeline, has_churn=has_churn)
        if any(token not in ("_", ABSENT) for token in tokens)
    ]
    asked = f'count(ALERTS{{alertname="{alert.name}", alertstate="firing"}}) or vector(0)'
    return {
        "name": f"{alert.name}: {name}",
        "interval": f"{_STEP}s",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": asked,
                "eval_time": f"{(length - 1) * _STEP}s",
                "exp_samples": [{"labels": "{}", "value": expected}],
            }
        ],
    }


def _scraped(
    one: Series, timeline: _Timeline, *, has_churn: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yield labels and values: one series, or one for each pod or leader that there was."""
    tokens = list(_tokens(one, timeline))
    if one.of_pod:
        long = _CHURN if has_churn else len(tokens)
        for at, begin in enumerate(range(0, len(tokens), long)):
            pod = f'namespace="a", pod="p{at}"'
            yield f"{one.labels}, {pod}", _only(tokens, begin, begin + long)
    elif has_churn and not one.name.startswith(("DCGM_", "kube_", "up")):
        middle = _WELL + (len(tokens) - _WELL) // 2
        before = one.labels + (", " if one.labels else "")
        # The new leader is there before the old one is gone; its counters begin at 0.
        yield f'{before}instance="a"', _only(tokens, 0, middle + 1)
        if one.kind == "counter":
            tokens = [f"{float(token) - float(tokens[middle]):.0f}" for token in tokens]
        yield f'{before}instance="b"', _only(tokens, middle, len(tokens))
    else:
        yield one.labels, tokens


def _only(tokens: Sequence[str], since: int, until: int) -> list[str]:
    """Return the values of a time; the series is gone after it."""
    after = [ABSENT, *("_" for _ in tokens[until + 1 :])] if until < len(tokens) else []
    return [*("_" for _ in tokens[:since]), *tokens[since:until], *after]


def _tokens(one: Series, timeline: _Timeline) -> Iterator[str]:
    """Yield the value of a series at each sample."""
    total, at, events = 0.0, 0, one.events
    for phase, count in timeline:
        if phase == "reset" and one.kind == "counter":
            total, events = 0.0, one.events
        for _ in range(count):
            value = one.well if phase == "well" else one.bad
            if phase in ("none", "gap"):
                # Only what tells of the event is missing before it.
                yield "_" if phase == "gap" or one.well != one.bad else str(one.well)
            elif isinstance(value, str):
                yield value
            elif one.kind == "gauge":
                yield f"{value:g}"
            elif one.kind == "clock":
                total = at * _STEP if phase == "well" else total
                yield f"{total:g}"
            else:
                is_event = phase != "well" and (not one.events or events > 0)
                events -= is_event
                total += value if phase == "well" or is_event else 0
                yield f"{total:.0f}"
            at += 1


def _values(tokens: Iterable[str]) -> str:
    """Write values as promtool reads them: what repeats once, with how often."""
    found: list[str] = []
    for token, run in groupby(tokens):
        count = len(list(run))
        if token == ABSENT:
            found.append(ABSENT + (f" _x{count - 1}" if count > 1 else ""))
        elif count == 1:
            found.append(token)
        else:  # "_x2" are two that are missing, "1x2" are three
            found.append(f"{token}x{count if token == '_' else count - 1}")
    return " ".join(found)


def _seconds(lasting: str) -> int:
    return int(lasting[:-1]) * _SECONDS[lasting[-1]]
