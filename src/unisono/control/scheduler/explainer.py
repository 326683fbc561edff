"""Writes why a workload waits: its condition QuotaReserved, and PodScheduled of pods.

Apart from the scheduler, so that ten thousand explanations never hold up a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import orjson

from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.admission import kueue_messages
from unisono.control.admission.kueue_messages import GATED, was_gated
from unisono.control.conditions import find, is_true, with_condition
from unisono.control.scheduler.loop import Scheduler
from unisono.control.scheduler.start_estimates import has_moved, start_of, without_times
from unisono.control.scheduler.translate import STRAY
from unisono.control.view import View
from unisono.engine.explain.diagnosis import (
    adds_to_facts,
    clause,
    headline,
    helps_to_ask_for_less,
    message_with,
    way_sentences,
)
from unisono.engine.explain.formatting import format_instant
from unisono.engine.explain.kueue_sentences import kueue_message
from unisono.engine.explain.messages import (
    reason_of,
    sentence,
    stage_of,
    what_would_help,
)
from unisono.engine.model.diagnosis import Cause, Condition, Diagnosis, Holder
from unisono.engine.model.explanation import Explanation, Gated
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.resources import UNLIMITED
from unisono.engine.model.workload import Workload
from unisono.kinds.core.topology import PREFERRED, REQUIRED, SLICE_LEVEL, UNCONSTRAINED
from unisono.kinds.kueue.waiting import WAITING
from unisono.kinds.quantity import format_amount as format_quantity
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# Reservations and estimates move all the time; not every minute is worth a write.
_PAUSE_SECONDS = 60.0
# But a start that was announced and is delayed is updated before it: this long before, and at most
# this often.
_NOTICE_SECONDS = 30.0
_LEAST_PAUSE_SECONDS = 5.0
# So many may be remembered in vain before that is looked through.
_MOST_OTHERS = 1000


class Explainer:
    """Writes what the scheduler found out; woken by it."""

    name = "explainer"
    watches: Sequence[Kind] = ()

    def __init__(self, scheduler: Scheduler, rate: ExplanationRate | None = None) -> None:
        """Take the scheduler, and the rate limit of updates if there is one."""
        self._scheduler = scheduler
        self._rate = rate
        self._told: dict[WorkloadKey, tuple[float, Explanation]] = {}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Only the scheduler wakes it."""
        return ()

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the explanation of one workload, if it is not there yet."""
        full = WorkloadKey(f"{key.namespace}/{key.name}")
        explanation = self._scheduler.explanations.get(full)
        if explanation is None:
            self._told.pop(full, None)
            if self._rate is not None:
                self._rate.forget(key)
            return
        if key.namespace.startswith(STRAY):
            pod = view.get(names.POD, key.name, key.namespace.removeprefix(STRAY))
            if pod is not None and not pod["spec"].get("nodeName"):
                found = self._scheduler.root_causes.of(full)
                yield from _unschedulable(pod, _plain(message_with(explanation, found)), now)
            return
        workload = view.peek(names.WORKLOAD, key.name, key.namespace)
        if workload is None:  # or it has no conditions that could be kept: an event says it
            return
        at, before = self._told.get(full, (0.0, explanation))
        if _differs_in_time_only(before, explanation):
            if _is_little(before, explanation, now):
                return
            due = at + _pause(before, explanation, at)
            if now < due:
                yield Again(due)
                return
        if self._rate is not None:  # asked first: most are put off, and need no wording
            yield from self._rate.put_off(key, now, self._last_admitted(now))
            if self._rate.has_put_off(key):
                return
        root_cause = self._scheduler.root_causes.of(full)
        waiting = self._scheduler.state.waiting.get(full)
        asked = requests_of(waiting.workload) if waiting is not None else None
        changes = waiting_status(workload, explanation, root_cause, asked=asked, now=now)
        if changes is None:
            if self._rate is not None:
                self._rate.give_back()
        else:
            yield Patch(Ref.to(workload), changes, "status")
            yield from _gate_events(workload, explanation)
            self._told[full] = now, explanation
            self._tidy()

    def _last_admitted(self, now: float) -> float:
        """Return when a workload was admitted last: a busy API takes seconds to store one plan."""
        return now if self._scheduler.sent.is_writing else self._scheduler.admitted_at

    def _tidy(self) -> None:
        """Forget workloads that do not wait any more; no event says when they stop."""
        waiting = self._scheduler.explanations
        if len(self._told) > 2 * len(waiting) + _MOST_OTHERS:
            self._told = {key: published for key, published in self._told.items() if key in waiting}


def _gate_events(workload: Json, explanation: Explanation) -> Steps:
    """Yield Kueue's event of a workload that has become gated, or has just been released."""
    gate = explanation.blockers[0]
    if was_gated(workload) == isinstance(gate, Gated):
        return
    if isinstance(gate, Gated):
        yield Note(Ref.to(workload), GATED, kueue_messages.gated(gate.by))
    else:
        yield Note(Ref.to(workload), kueue_messages.GATE_CLEARED, kueue_messages.RELEASED)


def _differs_in_time_only(old: Explanation, new: Explanation) -> bool:
    return old != new and without_times(old.blockers) == without_times(new.blockers)


def _is_little(old: Explanation, new: Explanation, now: float) -> bool:
    """Say whether a start is only a little earlier; a later one people have to know."""
    before, after = start_of(old), start_of(new)
    if before is None or after is None or type(before) is not type(after):
        return False
    return after.start <= before.start and not has_moved(before, after, Instant(int(now * 1000)))


def _pause(old: Explanation, new: Explanation, told_at: float) -> float:
    """Return how long the published start may stay although it is another now."""
    before, after = start_of(old), start_of(new)
    if before is None:
        return 0.0
    if after is not None and after.start <= before.start:
        return _PAUSE_SECONDS
    notice = before.start / 1000 - _NOTICE_SECONDS - told_at
    return min(_PAUSE_SECONDS, max(_LEAST_PAUSE_SECONDS, notice))


def _unschedulable(pod: Json, message: str, now: float) -> Steps:
    conditions = (pod.get("status") or {}).get("conditions")
    old = find(conditions, "PodScheduled")
    if old is not None and old.get("message") == message:
        return
    changed = with_condition(conditions, "PodScheduled", "False", "Unschedulable", message, now=now)
    yield Patch(Ref.to(pod), {"status": {"conditions": changed}}, "status")


# ---- how many explanations are written -----------------------------------------------------------
#
# On a real cluster the API server is the bottleneck: it stores some hundred writes a second, and
# an explanation costs it as much as an admission. While workloads are being admitted, most
# pending ones will not wait for long; their explanations are put off, and a workload that is
# admitted first never needs one.

# While workloads are admitted, and else: explanations a second.
BUSY_PER_SECOND = 4.0
QUIET_PER_SECOND = 100.0
# So many may come at once: the explanations of some jobs are written immediately.
MOST_AT_ONCE = 50.0
# For so long after the last admission it counts as busy.
BUSY_SECONDS = 2.0
_SHORTEST_REST_SECONDS = 1.0


class ExplanationRate:
    """A token bucket that fills with time, and the keys that wait for a token."""

    def __init__(self) -> None:
        """Begin with a full bucket."""
        self._left = MOST_AT_ONCE
        self._filled_at = 0.0
        self._admitted_at = float("-inf")
        self._put_off: set[Key] = set()

    def put_off(self, key: Key, now: float, admitted_at: float) -> Steps:
        """Yield when to come back if there is no token left; else nothing."""
        self._admitted_at = max(self._admitted_at, admitted_at)
        is_busy = now < self._admitted_at + BUSY_SECONDS
        rate = BUSY_PER_SECOND if is_busy else QUIET_PER_SECOND
        passed = max(0.0, now - self._filled_at)
        self._left = min(MOST_AT_ONCE, self._left + rate * passed)
        self._filled_at = now
        if self._left >= 1.0:
            self._left -= 1.0
            self._put_off.discard(key)
            return
        self._put_off.add(key)
        # Each is put off by as long as all others need, so none asks much more than once.
        yield Again(now + max(_SHORTEST_REST_SECONDS, len(self._put_off) / QUIET_PER_SECOND))

    def give_back(self) -> None:
        """Take back a token that was not needed: the explanation had not changed."""
        self._left = min(MOST_AT_ONCE, self._left + 1.0)

    def forget(self, key: Key) -> None:
        """Drop a key that needs no update any more."""
        self._put_off.discard(key)

    def has_put_off(self, key: Key) -> bool:
        """Say whether a key still waits for a token."""
        return key in self._put_off


# ---- an explanation as a condition ---------------------------------------------------------------
#
# Every fact with its numbers, as JSON. The condition QuotaReserved says the same in one line for
# people, in Kueue's sentence where it has one, and unisono.dev/Waiting then says it in ours.
# Programs, and `unisono why`, read the facts here: they are where every client of every Kubernetes
# can see them, and they are written together with those lines, so that none disagrees.

# Half of what a condition's message may have. Only a workload of many pod sets and flavors comes
# near it; then the facts at the end, which matter least, are left out and counted.
_MOST_CHARACTERS = 16_384
# Of a root cause: some thousand characters together, so that there is room for facts.
_MOST_CAUSES = 12
_MOST_WAYS = 6
_MOST_OF_A_WAY = 400


def facts_of(explanation: Explanation) -> list[Json]:
    """Return the facts, each with its sentence and what would change it."""
    return [
        {
            **_counted(msgspec.to_builtins(fact)),
            "says": sentence(fact),
            "changes": what_would_help(fact),
        }
        for fact in explanation.blockers
    ]


def _counted(value: Any) -> Any:
    """Return what a fact says with numbers that 64 bits hold: sums over a backlog may be larger."""
    match value:
        case bool():
            return value
        case int():
            return max(-UNLIMITED, min(value, UNLIMITED))
        case dict():
            return {key: _counted(one) for key, one in value.items()}
        case list() | tuple():
            return [_counted(one) for one in value]
        case _:
            return value


def written_facts(explanation: Explanation, found: Diagnosis | None = None) -> str:
    """Return an explanation as text; `left_off` says how many facts did not fit."""
    facts = facts_of(explanation)
    begin = f'{{"stage":{orjson.dumps(stage_of(explanation)).decode()},'
    if found is not None and adds_to_facts(found):
        begin += f'"rootCause":{orjson.dumps(root_cause_of(found)).decode()},'
    begin += '"facts":['
    best, size = 0, len(begin)
    texts: list[str] = []
    for kept, fact in enumerate(facts, 1):
        texts.append(orjson.dumps(fact).decode())
        size += len(texts[-1]) + (kept > 1)
        if size > _MOST_CHARACTERS:
            break  # the rest need not be written to know that it does not fit
        if size + len(_end(len(facts) - kept)) <= _MOST_CHARACTERS:
            best = kept
    return begin + ",".join(texts[:best]) + _end(len(facts) - best)


def root_cause_of(found: Diagnosis) -> Json:
    """Return a diagnosis as it is written: one set of causes that is enough, and all flavors."""
    made: Json = {
        "verdict": found.verdict,
        "says": _plain(headline(found)),
        "inTheWay": [_written_cause(one) for one in found.in_the_way[:_MOST_CAUSES]],
        "ways": [
            {
                "flavors": [*dict.fromkeys(flavor for _, _, flavor in way.flavors)],
                "says": says[:_MOST_OF_A_WAY],
                "possible": way.possible,
            }
            for way, says in zip(found.ways[:_MOST_WAYS], way_sentences(found), strict=False)
        ],
    }
    if found.starts_at is not None and found.basis == "limits" and found.verdict == "later":
        made["startsBy"] = format_instant(found.starts_at)
    if helps_to_ask_for_less(found):
        made["orLess"] = True
    if len(found.in_the_way) > _MOST_CAUSES:
        made["more"] = len(found.in_the_way) - _MOST_CAUSES
    if found.nearest is not None and found.nearest < _MOST_WAYS:
        made["nearest"] = found.nearest
    return made


def _written_cause(cause: Cause) -> Json:
    made: Json = {"cause": type(cause).__name__, "says": _plain(clause(cause))}
    if isinstance(cause, Condition):
        made["changes"] = what_would_help(cause.blocker)
    if isinstance(cause, Holder):
        made["workload"] = cause.workload
        if cause.ends is not None:
            made["ends"] = format_instant(cause.ends)
    return made


def _plain(text: str) -> str:
    """Return a text that calls a pod without a Workload a pod."""
    return text.replace(STRAY, "pod ")


def _end(left_off: int) -> str:
    return f'],"left_off":{left_off}}}' if left_off else "]}"


def requests_of(asked: Workload) -> list[Json]:
    """Return what the pods of each set ask for together, as `status.resourceRequests` has it."""
    done = dict(asked.reclaimable)
    return [
        {
            "name": one.name,
            "resources": {
                name: format_quantity(amount * max(0, one.count - done.get(one.name, 0)), name)
                for name, amount in one.requests
            },
        }
        for one in asked.pod_sets
    ]


def waiting_status(
    workload: Json,
    explanation: Explanation,
    found: Diagnosis | None = None,
    *,
    asked: list[Json] | None = None,
    now: float,
) -> Json | None:
    """Return the status patch that says why a workload waits; None if it says so already.

    `asked` is what it is charged if it is admitted as it is; None if that is not known.
    """
    status = workload.get("status") or {}
    more: Json = {}
    if asked is not None and asked != (status.get("resourceRequests") or []):
        more = {"resourceRequests": asked}
    old = find(status.get("conditions"), "QuotaReserved")
    reason, message = _reason(workload, explanation), _plain(kueue_message(explanation))
    own = _plain(message_with(explanation, found))
    message = message or own
    published_own = find(status.get("conditions"), WAITING)
    is_same = (published_own or {}).get("message", message) == own
    if (
        is_same
        and old is not None
        and (old["status"], old["reason"], old["message"])
        == (
            "False",
            reason,
            message,
        )
    ):
        published = find(status.get("conditions"), names.EXPLANATION)
        if (
            found is None
            or published is None
            or published["message"] == written_facts(explanation, found)
        ):
            return {"status": more} if more else None
    if is_true(status.get("conditions"), "QuotaReserved"):
        return None  # it has quota still, and is about to release it
    conditions = with_condition(
        status.get("conditions"),
        "QuotaReserved",
        "False",
        reason,
        message,
        now=now,
        generation=workload["metadata"].get("generation"),
    )
    stage = stage_of(explanation).capitalize()
    if own != message:
        conditions = with_condition(conditions, WAITING, "True", reason, own, now=now)
    else:
        conditions = [one for one in conditions if one["type"] != WAITING]
    conditions = with_condition(
        conditions, names.EXPLANATION, "True", stage, written_facts(explanation, found), now=now
    )
    return {"status": {"conditions": conditions, **more}}


# The reason of a workload that has quota and fits on no nodes, unless it requests a topology:
# Kueue's TopologyPlacementFailed means that request alone.
_UNSCHEDULABLE = "Unschedulable"
_TOPOLOGY = (REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_LEVEL)


def _reason(workload: Json, explanation: Explanation) -> str:
    reason = reason_of(explanation)
    if reason == "TopologyPlacementFailed" and not _requests_topology(workload):
        return _UNSCHEDULABLE
    return reason


def _requests_topology(workload: Json) -> bool:
    for one in workload["spec"].get("podSets") or ():
        annotations = (one["template"].get("metadata") or {}).get("annotations") or {}
        if one.get("topologyRequest") or any(key in annotations for key in _TOPOLOGY):
            return True
    return False
