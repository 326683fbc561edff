"""Finds events that were not told yet, hands them to the outbox, and records which were told.

    a Workload changes ──▶ its events ──▶ not in its record ──▶ outbox ──▶ sent, or given up
                                               ▲                               │
                                               └── `unisono.dev/notified` ◀────┘

The record is written after a message was sent: a crash between the two repeats that message, and a
crash before loses nothing. A Workload of which no recipient is told costs nothing but a look at the
rules. Arrays of Slurm's have no Workload; `ArrayNotifier` does the same for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import seconds
from unisono.control.controller import Reads, own_key
from unisono.control.job_kinds import slurm
from unisono.control.job_kinds.slurm.array_tasks import array_of
from unisono.control.view import View
from unisono.kinds.decode import decode
from unisono.kinds.notifying import NOTIFIED, NOTIFY, NOTIFY_TO, Event, tells_each_task
from unisono.kinds.policy.notifications import Notifications
from unisono.kinds.policy.schema import Policy
from unisono.kinds.policy.settings import Settings, counting_policy
from unisono.kinds.slurm import ENDED
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.notify.events import (
    PROMISE,
    Found,
    Happened,
    events_of,
    is_fresh,
    is_told,
    read_told,
    written_told,
)
from unisono.notify.messages import Notice
from unisono.notify.outbox import Letter, Outbox
from unisono.notify.recipients import Recipients, recipients_of
from unisono.notify.subject import Subject, owner_name, subject_of, subject_of_array

# The event on a job that asks for mail and gets none.
REFUSED = "NotificationRefused"
_REFUSED_MARK = "refused"
NAME = "notifications"
ARRAYS = "array-notifications"
# What events are read from; other changes of a Workload wake nothing.
_CONDITIONS = frozenset(
    {"Admitted", "PodsReady", "Evicted", "Finished", names.GRANTED, names.EXPLANATION}
)
_POLICY_KEY = Key("", "")  # no Workload has an empty name


class LivePolicy:
    """The section of the policy as it is now.

    At the start it is that of the settings, which may be from a file. A Policy of the API that has
    the section counts from then on, until it is taken out again.
    """

    def __init__(self, settings: Settings, outbox: Outbox) -> None:
        """Begin with what was chosen."""
        self._outbox = outbox
        self._was_in_api = False
        self.section: Notifications | None = None
        self._use(settings.notifications)

    def follow(self, policies: Sequence[Json]) -> None:
        """Use what the Policies of the API say now; one that cannot be read changes nothing."""
        chosen = counting_policy(policies)
        if chosen is None or "notifications" not in chosen:
            if self._was_in_api:
                self._use(None)
            return
        manifest, problems = decode(Policy, chosen, ignore_unknown=True)
        if manifest is not None and not problems:
            self._was_in_api = True
            self._use(manifest.notifications)

    def _use(self, section: Notifications | None) -> None:
        self.section = section
        if section is not None:
            limit = section.limit
            self._outbox.limit(count=limit.count, per_s=limit.per.ms / 1000)


class Teller:
    """Hands events to the outbox and writes the record: the part that both controllers share."""

    def __init__(self, policy: LivePolicy, outbox: Outbox, awake: Callable[[], None]) -> None:
        """Take the rules and the outbox; `awake` is called when a letter was posted."""
        self.policy = policy
        self.outbox = outbox
        self._awake = awake

    def tell(
        self, obj: Json, subject: Subject, recipients: Recipients, found: Found, now: float
    ) -> Steps:
        """Post what is new, and record what is settled; the sender wakes us when more is."""
        told = told_of(obj)
        record = dict(told)
        settled: list[Letter] = []
        was_posted = False
        for happened in found.events:
            if is_told(happened, told) or not is_fresh(happened, now):
                continue
            letters = list(_letters(Notice(subject, happened), recipients))
            before = len(self.outbox)
            # All are posted, also when the first is settled already.
            states = [self.outbox.post(letter) for letter in letters]
            was_posted = was_posted or len(self.outbox) > before
            if all(states):
                record[happened.event] = happened.mark
                settled += letters
        if was_posted:
            self._awake()
        if found.promise or PROMISE in record:
            record[PROMISE] = found.promise
        yield from _refusals(obj, recipients, record)
        text = written_told(record)
        if text != written_told(told):
            changes = {"metadata": {"annotations": {NOTIFIED: text or None}}}
            yield Patch(Ref.to(obj), changes, exact=False)
        for letter in settled:
            self.outbox.forget(letter)


class Notifier:
    """Tells of Workloads."""

    name = NAME
    watches: Sequence[Kind] = (names.WORKLOAD, names.POLICY)
    ignores_own_writes = True  # what it writes is its own record

    def __init__(self, teller: Teller) -> None:
        """Take what it shares with the other one."""
        self.teller = teller
        self.reads: Mapping[Kind, Reads] = {names.WORKLOAD: self._read_of}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A Workload that may have something to tell, or the rules."""
        if kind == names.POLICY:
            yield _POLICY_KEY
        elif self._concerns(obj):
            yield own_key(obj)

    def _concerns(self, workload: Json) -> bool:
        section = self.teller.policy.section
        return _is_asked(workload) or (section is not None and bool(section.rules))

    def _read_of(self, workload: Json) -> object:
        """Return the part that decides what is told; of most Workloads nothing is."""
        return _read_of(workload) if self._concerns(workload) else None

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Tell of one Workload what was not told yet."""
        policy = self.teller.policy
        if key == _POLICY_KEY:
            policy.follow(list(view.all(names.POLICY)))
            return
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None:
            return
        owner = owner_name(workload)
        job = view.peek(slurm.JOB, owner, key.namespace) if owner else None
        subject = subject_of(workload, job)
        recipients = recipients_of(policy.section, _annotations(workload), subject)
        found = events_of(workload, recipients.wanted, told_of(workload), now)
        yield from self.teller.tell(workload, subject, recipients, found, now)
        if found.look_again is not None:
            yield Again(found.look_again)


class ArrayNotifier:
    """Tells of arrays of Slurm's as a whole, as their owners ask; rules are about each task."""

    name = ARRAYS
    watches: Sequence[Kind] = (slurm.JOB,)
    ignores_own_writes = True

    def __init__(self, teller: Teller) -> None:
        """Take what it shares with the other one."""
        self.teller = teller
        self.reads: Mapping[Kind, Reads] = {slurm.JOB: _read_of_job}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """An array that asks for it, or the array of a task."""
        if obj["spec"].get("array") and _is_asked(obj):
            yield own_key(obj)
        elif name := array_of(obj):
            yield Key(obj["metadata"].get("namespace", ""), name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Tell of one array what was not told yet."""
        array = view.get(slurm.JOB, key.name, key.namespace)
        if array is None or not array["spec"].get("array") or not _is_asked(array):
            return
        annotations = _annotations(array)
        if tells_each_task(annotations):
            return
        section = self.teller.policy.section
        if section is not None:
            section = msgspec.structs.replace(section, rules=())
        tasks = view.owned(slurm.JOB, array["metadata"]["uid"])
        subject = subject_of_array(array, tasks)
        recipients = recipients_of(section, annotations, subject)
        events = tuple(_of_array(array, tasks, recipients.wanted))
        yield from self.teller.tell(array, subject, recipients, Found(events), now)


def _of_array(array: Json, tasks: Sequence[Json], wanted: Collection[Event]) -> Iterator[Happened]:
    """Yield that the first task has begun, and that the last is over."""
    starts = [seconds((one.get("status") or {}).get("startTime") or "") for one in tasks]
    began = min((one for one in starts if one), default=0.0)
    status = array.get("status") or {}
    if began and "begin" in wanted:
        queued = max(0.0, began - seconds(array["metadata"].get("creationTimestamp") or ""))
        yield Happened(event="begin", mark="1", at=began, queued_s=queued)
    state = str(status.get("state") or "")
    if state not in ENDED:
        return
    event: Event = "end" if state in ("COMPLETED", "CANCELLED") else "fail"
    if event in wanted:
        ended = str(status.get("endTime") or "")
        why = str(status.get("message") or "")
        yield Happened(event=event, mark=ended or "1", at=seconds(ended), why=why)


def told_of(obj: Json) -> dict[str, str]:
    """Return the record on an object."""
    return read_told(str(_annotations(obj).get(NOTIFIED) or ""))


def _annotations(obj: Json) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def _is_asked(obj: Json) -> bool:
    return NOTIFY in _annotations(obj)


def _letters(notice: Notice, recipients: Recipients) -> Iterator[Letter]:
    for target, events in recipients.events.items():
        if notice.happened.event in events:
            yield Letter(target, notice)


def _refusals(obj: Json, recipients: Recipients, record: dict[str, str]) -> Iterator[Note]:
    """Say once why a job gets no mail that it asks for."""
    if not recipients.refused:
        return
    why = "; ".join(recipients.refused)
    mark = hashlib.sha256(why.encode()).hexdigest()[:8]
    if record.get(_REFUSED_MARK) != mark:
        record[_REFUSED_MARK] = mark
        yield Note(Ref.to(obj), REFUSED, f"Gets no mail: {why}", "Warning")


def _read_of(workload: Json) -> object:
    annotations = _annotations(workload)
    return (
        annotations.get(NOTIFY),
        annotations.get(NOTIFY_TO),
        workload["spec"].get("active"),
        [
            (one["type"], one["status"], one["lastTransitionTime"], one.get("message"))
            for one in (workload.get("status") or {}).get("conditions") or ()
            if one["type"] in _CONDITIONS
        ],
    )


def _read_of_job(job: Json) -> object:
    """Return the same of a SlurmJob."""
    status = job.get("status") or {}
    times = (status.get("startTime"), status.get("endTime"))
    return _annotations(job).get(NOTIFY), _annotations(job).get(NOTIFY_TO), *times
