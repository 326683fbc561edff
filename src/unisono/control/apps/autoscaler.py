"""Sets how many replicas there are to be, by what is measured: HorizontalPodAutoscalers.

    metrics ──▶ a proposal each, the largest counts ──▶ stabilised ──▶ limited ──▶ spec.replicas

The rules are those of `autoscaling/v2`: a tolerance of a tenth, pods that are not ready count with
care, recommendations of the last minutes hold a scale-down back, policies limit each step.
Kubernetes remembers recommendations and steps in memory; here they are in an annotation of the
object, so that a restart forgets none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from unisono.control import names
from unisono.control.actions import Action, Again, Json, Note, Patch, Ref, Steps
from unisono.control.apps import (
    AUTOSCALER,
    DEPLOYMENT,
    LEADER_WORKER_SET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from unisono.control.apps.members import is_active, is_its_own
from unisono.control.conditions import find, timestamp, with_condition
from unisono.control.controller import own_key
from unisono.control.jobs.pods import is_deleting, is_ready, phase_of
from unisono.control.view import View
from unisono.kinds.json_texts import read_json
from unisono.kinds.meta import is_selected
from unisono.kinds.quantity import Quantity, format_amount
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# What its containers use now, in thousandths, by container and resource; None if nothing is known.
PodUsage = Callable[[Json, float], Mapping[str, Mapping[str, int]] | None]

# ConfigMaps with this label hold what no pod measures: values of external and object metrics.
METRICS_LABEL = "unisono.dev/metrics"
_MEMORY = "unisono.dev/autoscaler"
_PERIOD_S = 15.0  # between two looks, as in Kubernetes
_TOLERANCE = Fraction(1, 10)
_STABILISED_DOWN_S = 300
_LONGEST_S = 3600  # the longest window that Kubernetes allows
_MOST_REMEMBERED = 500  # steps and recommendations; a window has 240 looks
_TARGETS = {
    (kind.api_version.partition("/")[0] if "/" in kind.api_version else "", kind.kind): kind
    for kind in (
        DEPLOYMENT,
        REPLICA_SET,
        STATEFUL_SET,
        REPLICATION_CONTROLLER,
        LEADER_WORKER_SET,
    )
}


def no_usage(pod: Json, now: float) -> None:
    """Know nothing of what pods use."""


class NotMeasured(Exception):
    """A metric has no value; the reason is a word for programs."""

    def __init__(self, reason: str, message: str) -> None:
        """Say what is missing."""
        super().__init__(message)
        self.reason = reason


class Autoscalers:
    """Runs HorizontalPodAutoscalers."""

    name = "horizontal-pod-autoscaler"
    watches: Sequence[Kind] = (AUTOSCALER,)
    ignores_own_writes = True

    def __init__(self, usage: PodUsage = no_usage) -> None:
        """Take what knows how much pods use."""
        self._usage = usage

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """An autoscaler; what it measures is looked at again and again."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Measure, and set the number."""
        scaler = view.get(AUTOSCALER, key.name, key.namespace)
        if scaler is None or is_deleting(scaler):
            return
        status = dict(scaler.get("status") or {})
        status.pop("observedGeneration", None)
        look = _Look(scaler, view, self._usage, now, list(status.get("conditions") or ()))
        target = look.target()
        memory = _Memory.read(scaler)
        if target is not None:
            yield from look.scale(target, memory, status)
        status["conditions"] = look.conditions
        yield from _write(scaler, status, memory, now)
        yield Again(now + _PERIOD_S)


@dataclass(slots=True)
class _Memory:
    """Recommendations and steps of the last minutes: times and numbers, oldest first."""

    recommended: list[tuple[int, int]] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)

    @staticmethod
    def read(scaler: Json) -> _Memory:
        """Read it; what cannot be read was never remembered."""
        text = (scaler["metadata"].get("annotations") or {}).get(_MEMORY, "")
        try:
            recommended, steps = read_json(text)
            return _Memory(
                [(int(at), int(number)) for at, number in recommended][-_MOST_REMEMBERED:],
                [(int(at), int(number)) for at, number in steps][-_MOST_REMEMBERED:],
            )
        except (ValueError, TypeError, OverflowError):
            return _Memory()

    def written(self, now: float) -> str:
        """Write down what still matters."""
        since = now - _LONGEST_S
        recommended = _since(self.recommended, since)
        steps = [one for one in self.steps if one[0] > since]
        return json.dumps([recommended, steps], separators=(",", ":"))

    def recommend(self, now: float, number: int) -> None:
        """Remember a recommendation; one that is as the last one was already remembered."""
        if not self.recommended or self.recommended[-1][1] != number:
            self.recommended.append((int(now), number))

    def stepped(self, since: float, *, up: bool) -> int:
        """Return how many replicas were added, or taken, since a time."""
        return sum(abs(change) for at, change in self.steps if at > since and (change > 0) == up)


def _since(held: Sequence[tuple[int, int]], since: float) -> list[tuple[int, int]]:
    """Return what was recommended since a time, with what held when it began."""
    later = [one for one in held if one[0] > since]
    before = [one for one in held if one[0] <= since]
    return [*before[-1:], *later]


@dataclass(frozen=True, slots=True)
class _Proposal:
    """How many replicas one metric asks for."""

    number: int
    shown: Json  # its value, for status.currentMetrics
    about: str


class _Look:
    """One look at one autoscaler."""

    def __init__(
        self, scaler: Json, view: View, usage: PodUsage, now: float, conditions: list[Json]
    ) -> None:
        self._scaler, self._spec, self._view, self._now = scaler, scaler["spec"], view, now
        self._usage = usage
        self._namespace = scaler["metadata"]["namespace"]
        self.conditions = conditions

    def target(self) -> Json | None:
        """Return what is scaled; None if there is no such."""
        ref = self._spec.get("scaleTargetRef") or {}
        version = str(ref.get("apiVersion") or "")
        group = version.partition("/")[0] if "/" in version else ""
        kind = _TARGETS.get((group, str(ref.get("kind"))))
        name = str(ref.get("name") or "")
        found = self._view.get(kind, name, self._namespace) if kind is not None else None
        if found is None or is_deleting(found):
            what = f'{ref.get("kind")} "{name}"'
            why = f"{what} not found" if kind is not None else f"{what} cannot be scaled here"
            self._say("AbleToScale", "False", "FailedGetScale", why)
            return None
        self._say("AbleToScale", "True", "SucceededGetScale", "the target's scale was read")
        return found

    def scale(self, target: Json, memory: _Memory, status: Json) -> Steps:
        """Set the number of replicas of a target, if it is to be another one."""
        current = int(target["spec"].get("replicas", 1))
        least, most = int(self._spec.get("minReplicas") or 1), int(self._spec["maxReplicas"])
        status["currentReplicas"] = int((target.get("status") or {}).get("replicas", 0))
        status["desiredReplicas"] = current
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            self._say("ScalingActive", "False", "ScalingDisabled", message)
            return
        if not memory.recommended:
            memory.recommend(self._now, current)  # what was chosen before counts for a while
        if current > most:
            wanted, about = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            wanted, about = least, "Current number of replicas below Spec.MinReplicas"
        else:
            found = yield from self._proposed(target, current, status)
            if found is None:
                return
            about = found.about
            wanted = self._bounded(found.number, current, memory, least=least, most=most)
        if wanted == current:
            return
        yield Patch(Ref.to(target), {"spec": {"replicas": wanted}})
        memory.steps.append((int(self._now), wanted - current))
        status["desiredReplicas"], status["lastScaleTime"] = wanted, timestamp(self._now)
        message = f"the {target['kind']} was scaled to {wanted}"
        self._say("AbleToScale", "True", "SucceededRescale", message)
        message = f"New size: {wanted}; reason: {about}"
        yield Note(Ref.to(self._scaler), "SuccessfulRescale", message)

    def _say(self, kind: str, word: Any, reason: str, message: str) -> None:
        self.conditions = with_condition(
            self.conditions, kind, word, reason, message, now=self._now
        )

    # ---- metrics -----------------------------------------------------------------------------

    def _proposed(
        self, target: Json, current: int, status: Json
    ) -> Generator[Action, Any, _Proposal | None]:
        """Return the largest proposal; None if nothing could be measured that decides."""
        found: list[_Proposal] = []
        missing: list[NotMeasured] = []
        for metric in self._spec.get("metrics") or ():
            try:
                found.append(self._proposal(metric, target, current))
            except NotMeasured as error:
                missing.append(error)
        status["currentMetrics"] = [one.shown for one in found] or None
        largest = max(found, key=lambda one: one.number, default=None)
        # With something unknown the number may grow, but never shrink.
        if missing and (largest is None or largest.number < current):
            first = missing[0]
            message = f"the HPA was unable to compute the replica count: {first}"
            before = find(self.conditions, "ScalingActive")
            if before is None or before["reason"] != first.reason:
                yield Note(Ref.to(self._scaler), first.reason, str(first), "Warning")
            self._say("ScalingActive", "False", first.reason, message)
            return None
        if largest is not None:
            message = f"the HPA was able to calculate a replica count from {largest.about}"
            self._say("ScalingActive", "True", "ValidMetricFound", message)
        return largest

    def _proposal(self, metric: Json, target: Json, current: int) -> _Proposal:
        sort = metric.get("type")
        if sort == "Resource":
            return self._resource(metric["resource"], "", target, current)
        if sort == "ContainerResource":
            asked = metric["containerResource"]
            return self._resource(asked, str(asked.get("container") or ""), target, current)
        if sort == "External":
            return self._external(metric["external"], target, current)
        if sort == "Object":
            return self._object(metric["object"], target, current)
        if sort == "Pods":
            return self._pods_metric(metric["pods"], target, current)
        raise NotMeasured("InvalidMetricSourceType", f"unknown metric source type {sort!r}")

    def _pods(self, target: Json) -> list[Json]:
        found = self._view.within(names.POD, self._namespace)
        return [pod for pod in found if is_active(pod) and is_its_own(target, pod)]

    def _resource(self, asked: Json, container: str, target: Json, current: int) -> _Proposal:
        name, wanted = str(asked.get("name") or ""), asked.get("target") or {}
        pods = self._pods(target)
        used: dict[str, int] = {}
        for pod in pods:
            amount = self._used(pod, name, container)
            if amount is not None:
                used[pod["metadata"]["uid"]] = amount
        if not used:
            what = f"no metrics of {name} from the pods of {target['metadata']['name']}"
            reason = f"FailedGet{'ContainerR' if container else 'R'}esourceMetric"
            raise NotMeasured(reason, what)
        share = wanted.get("averageUtilization")
        total = sum(used.values())
        shown: Json = {"averageValue": _written(total // len(used), name)}
        if share is not None:
            requests = {pod["metadata"]["uid"]: _requested(pod, name, container) for pod in pods}
            if not all(requests.values()):
                what = f"missing request for {name} in a container of {target['metadata']['name']}"
                raise NotMeasured("FailedGetResourceMetric", what)
            of_measured = sum(requests[uid] for uid in used)
            shown["averageUtilization"] = total * 100 // of_measured
            expected = {uid: Fraction(amount * share, 100) for uid, amount in requests.items()}
        else:
            value = _milli(wanted.get("averageValue"))
            expected = {pod["metadata"]["uid"]: Fraction(value) for pod in pods}
        number = _with_care(used, expected, pods, current, self._is_close)
        word = "utilization" if share is not None else "value"
        about = f"{name} resource {word} ({'percentage of request' if share else 'average'})"
        part = {"container": container, "name": name} if container else {"name": name}
        sort = "ContainerResource" if container else "Resource"
        field_ = sort[0].lower() + sort[1:]
        return _Proposal(number, {"type": sort, field_: {**part, "current": shown}}, about)

    def _used(self, pod: Json, resource: str, container: str) -> int | None:
        found = self._usage(pod, self._now)
        if found is None:
            return None
        if container:
            return found.get(container, {}).get(resource)
        amounts = [one[resource] for one in found.values() if resource in one]
        return sum(amounts) if amounts else None

    def _external(self, asked: Json, target: Json, current: int) -> _Proposal:
        metric = asked.get("metric") or {}
        name = str(metric.get("name") or "")
        value = self._measured(name, metric.get("selector"))
        if value is None:
            raise NotMeasured("FailedGetExternalMetric", self._nowhere(name, "external metric"))
        number, shown = self._by_value(value, asked.get("target") or {}, target, current)
        current_ = {"metric": metric, "current": shown}
        return _Proposal(
            number, {"type": "External", "external": current_}, f"external metric {name}"
        )

    def _object(self, asked: Json, target: Json, current: int) -> _Proposal:
        metric, about = asked.get("metric") or {}, asked.get("describedObject") or {}
        name = str(metric.get("name") or "")
        where = f"{str(about.get('kind')).lower()}.{about.get('name')}.{name}"
        value = self._measured(where, metric.get("selector"))
        if value is None:
            raise NotMeasured("FailedGetObjectMetric", self._nowhere(where, "object metric"))
        number, shown = self._by_value(value, asked.get("target") or {}, target, current)
        current_ = {"metric": metric, "describedObject": about, "current": shown}
        return _Proposal(number, {"type": "Object", "object": current_}, f"object metric {name}")

    def _pods_metric(self, asked: Json, target: Json, current: int) -> _Proposal:
        metric = asked.get("metric") or {}
        name = str(metric.get("name") or "")
        value = self._measured(f"pods.{name}", metric.get("selector"))
        if value is None:
            raise NotMeasured("FailedGetPodsMetric", self._nowhere(f"pods.{name}", "pods metric"))
        wanted = _milli((asked.get("target") or {}).get("averageValue"))
        ratio = Fraction(value, wanted) if wanted else Fraction(1)
        number = current if self._is_close(ratio) else math.ceil(ratio * len(self._pods(target)))
        shown = {"metric": metric, "current": {"averageValue": _written(value)}}
        return _Proposal(number, {"type": "Pods", "pods": shown}, f"pods metric {name}")

    def _by_value(self, value: int, wanted: Json, target: Json, current: int) -> tuple[int, Json]:
        """Return the number for a value of the whole, and how that is shown."""
        if wanted.get("averageValue") is not None:
            each = _milli(wanted["averageValue"])
            there = max(1, int((target.get("status") or {}).get("replicas", 0)))
            shown = {"averageValue": _written(value // there)}
            if not each or self._is_close(Fraction(value, each * there)):
                return current, shown
            return math.ceil(Fraction(value, each)), shown
        goal = _milli(wanted.get("value"))
        ratio = Fraction(value, goal) if goal else Fraction(1)
        ready = sum(map(is_ready, self._pods(target)))
        number = current if self._is_close(ratio) else math.ceil(ratio * ready)
        return number, {"value": _written(value)}

    def _measured(self, key: str, selector: Json | None) -> int | None:
        """Return a value of the ConfigMaps that stand in for a metrics server, in thousandths."""
        for one in self._view.within(names.CONFIG_MAP, self._namespace):
            labels = one["metadata"].get("labels") or {}
            if METRICS_LABEL not in labels or (selector and not is_selected(selector, labels)):
                continue
            text = (one.get("data") or {}).get(key)
            if text is not None:
                try:
                    return Quantity.from_raw(text.strip()).milli
                except ValueError:
                    return None
        return None

    def _nowhere(self, key: str, what: str) -> str:
        return (
            f"{what} {key} has no value: no ConfigMap of namespace {self._namespace} with the"
            f" label {METRICS_LABEL} has such a key with a number"
        )

    def _is_close(self, ratio: Fraction) -> bool:
        """Say whether a ratio is too close to one to do anything."""
        behaviour = self._spec.get("behavior") or {}
        rules = behaviour.get("scaleUp" if ratio > 1 else "scaleDown") or {}
        given = rules.get("tolerance")
        tolerance = _TOLERANCE if given is None else Fraction(_milli(given), 1000)
        return abs(ratio - 1) <= tolerance

    # ---- bounds ------------------------------------------------------------------------------

    def _bounded(
        self, proposed: int, current: int, memory: _Memory, *, least: int, most: int
    ) -> int:
        """Return the number after stabilisation, policies and bounds."""
        behaviour = self._spec.get("behavior") or {}
        up, down = behaviour.get("scaleUp") or {}, behaviour.get("scaleDown") or {}
        memory.recommend(self._now, proposed)
        window = down.get("stabilizationWindowSeconds")
        slow = _window(memory, self._now, _STABILISED_DOWN_S if window is None else window)
        fast = _window(memory, self._now, up.get("stabilizationWindowSeconds") or 0)
        wanted = proposed
        if proposed < current:
            wanted = min(current, max(slow))
        elif proposed > current:
            wanted = max(current, min(fast))
        if wanted != proposed:
            message = "recent recommendations differ, and the most careful one counts"
            reason = "ScaleDownStabilized" if proposed < current else "ScaleUpStabilized"
            self._say("AbleToScale", "True", reason, message)
        reason, message = "DesiredWithinRange", "the desired count is within the acceptable range"
        if wanted > current:
            allowed = _allowed_up(up, current, memory, self._now)
            if allowed < wanted:
                wanted, reason = allowed, "ScaleUpLimit"
                message = "the desired replica count is increasing faster than the maximum rate"
        elif wanted < current:
            allowed = _allowed_down(down, current, memory, self._now)
            if allowed > wanted:
                wanted, reason = allowed, "ScaleDownLimit"
                message = "the desired replica count is decreasing faster than the maximum rate"
        if wanted > most:
            wanted, reason = most, "TooManyReplicas"
            message = "the desired replica count is more than the maximum replica count"
        elif wanted < least:
            wanted, reason = least, "TooFewReplicas"
            message = "the desired replica count is less than the minimum replica count"
        word = "False" if reason == "DesiredWithinRange" else "True"
        self._say("ScalingLimited", word, reason, message)
        return wanted


def _window(memory: _Memory, now: float, length: int) -> list[int]:
    """Return what was recommended within so many seconds; at least the last one."""
    held = _since(memory.recommended, now - length) if length else memory.recommended[-1:]
    return [number for _, number in held]


def _allowed_up(rules: Json, current: int, memory: _Memory, now: float) -> int:
    policies = rules.get("policies") or (
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    )
    return _by_policies(rules, policies, current, memory, now, up=True)


def _allowed_down(rules: Json, current: int, memory: _Memory, now: float) -> int:
    policies = rules.get("policies") or ({"type": "Percent", "value": 100, "periodSeconds": 15},)
    return _by_policies(rules, policies, current, memory, now, up=False)


def _by_policies(
    rules: Json, policies: Iterable[Json], current: int, memory: _Memory, now: float, *, up: bool
) -> int:
    """Return how far the policies allow to go; Max is the one that changes most."""
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits = []
    for policy in policies:
        since = now - float(policy.get("periodSeconds") or 15)
        before = current - memory.stepped(since, up=True) + memory.stepped(since, up=False)
        value = int(policy.get("value") or 0)
        sign = 1 if up else -1
        if policy.get("type") == "Percent":
            exact = Fraction(before * (100 + sign * value), 100)
            limits.append(math.ceil(exact))
        else:
            limits.append(before + sign * value)
    takes_most = rules.get("selectPolicy") != "Min"
    found = max(limits) if takes_most == up else min(limits)
    return max(current, found) if up else min(current, max(0, found))


# ---- amounts -------------------------------------------------------------------------------------


def _with_care(
    used: Mapping[str, int],
    expected: Mapping[str, Fraction],
    pods: Sequence[Json],
    current: int,
    is_close: Callable[[Fraction], bool],
) -> int:
    """Return how many pods there should be for what the measured ones use.

    Pods that are not ready are left out at first. Once the direction is known, they and those that
    are not measured count against it: as idle before scaling up, as fully used before scaling down.
    """
    ready = {
        pod["metadata"]["uid"]
        for pod in pods
        if is_ready(pod) and phase_of(pod) == "Running" and pod["metadata"]["uid"] in used
    }
    counted = ready or set(used)
    ratio = _ratio({uid: Fraction(used[uid]) for uid in counted}, expected)
    others = [pod["metadata"]["uid"] for pod in pods if pod["metadata"]["uid"] not in counted]
    if not others:
        return current if is_close(ratio) else math.ceil(ratio * len(counted))
    whole = {uid: Fraction(used[uid]) for uid in counted}
    for uid in others:
        whole[uid] = Fraction(0) if ratio > 1 else expected[uid]
    careful = _ratio(whole, expected)
    if is_close(careful) or (ratio > 1) != (careful > 1):
        return current
    number = math.ceil(careful * len(whole))
    goes_back = (careful < 1 and number > current) or (careful > 1 and number < current)
    return current if goes_back else number


def _ratio(used: Mapping[str, Fraction], expected: Mapping[str, Fraction]) -> Fraction:
    wanted = sum((expected[uid] for uid in used), Fraction(0))
    return sum(used.values(), Fraction(0)) / wanted if wanted else Fraction(1)


def _requested(pod: Json, resource: str, container: str) -> int:
    """Return what a pod requests, in thousandths; 0 if one of its containers requests nothing."""
    amounts = [_request(one, resource) for one in _containers(pod, container)]
    return sum(amounts) if all(amounts) else 0


def _containers(pod: Json, name: str) -> Iterator[Json]:
    for one in pod["spec"].get("containers") or ():
        if not name or one["name"] == name:
            yield one


def _request(container: Json, resource: str) -> int:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return _milli(asked.get(resource))


def _milli(value: object) -> int:
    if value is None:
        return 0
    try:
        return max(0, Quantity.from_raw(value).milli)
    except ValueError:
        return 0


def _written(milli: int, resource: str = "") -> str:
    """Write an amount in thousandths as a quantity."""
    if resource == "cpu" or milli % 1000:
        return format_amount(milli, "cpu")
    return format_amount(milli // 1000, resource)


def _write(scaler: Json, status: Json, memory: _Memory, now: float) -> Steps:
    old = scaler.get("status") or {}
    if any(old.get(name) != value for name, value in status.items()):
        written = yield Patch(Ref.to(scaler), {"status": status}, "status")
        scaler = written
    text = memory.written(now)
    held = (scaler["metadata"].get("annotations") or {}).get(_MEMORY)
    if text != held and (memory.recommended or memory.steps):
        changes = {"metadata": {"annotations": {_MEMORY: text}}}
        yield Patch(Ref.to(scaler), changes, exact=False)
