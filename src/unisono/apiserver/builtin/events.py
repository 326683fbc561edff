"""Events and leases, whose times are written with microseconds.

The newer face, `events.k8s.io/v1`, is a conversion of the same object (`conversion`). An object is
checked in the version that it was written in, with the names of its fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import invalid, required
from unisono.apiserver.builtin.fields import at
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context, Strategy
from unisono.apiserver.times import micro_timestamp, seconds
from unisono.kinds.overriding import override

# Where events about objects without a namespace live; the newer face knows one more place.
_FOR_CLUSTER = ("default",)
_FOR_CLUSTER_NEW = ("default", "kube-system")


class EventStrategy(Strategy):
    """An Event, under either face."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Write times with microseconds where they have them."""
        to_micros(obj, "eventTime")
        to_micros(at(obj, "series"), "lastObservedTime")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield an event in another namespace than its object, or without its author."""
        is_new_style = obj.get("apiVersion") != "v1"
        subject = "regarding" if is_new_style else "involvedObject"
        homes = _FOR_CLUSTER_NEW if is_new_style else _FOR_CLUSTER
        namespace = at(obj, "metadata").get("namespace")
        about = at(obj, subject).get("namespace") or ""
        if about != namespace if about else namespace not in homes:
            yield invalid(f"{subject}.namespace", about, "does not match event.namespace")
        if is_new_style and old is None:
            yield from _check_author(obj)


def _check_author(obj: Json) -> Iterator[Cause]:
    if not obj.get("eventTime"):
        yield required("eventTime")
    else:
        for field in ("reportingController", "reportingInstance", "action", "reason"):
            if not obj.get(field):
                yield required(field)
    kind = obj.get("type")
    if kind not in ("Normal", "Warning"):
        yield invalid("type", kind, "must be Normal or Warning")


# ---- leases --------------------------------------------------------------------------------------


class LeaseStrategy(Strategy):
    """A Lease."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Write times with microseconds, as leader election expects."""
        to_micros(at(obj, "spec"), "acquireTime", "renewTime")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield durations that make no sense."""
        spec = at(obj, "spec")
        duration = spec.get("leaseDurationSeconds")
        if isinstance(duration, int) and duration <= 0:
            yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
        transitions = spec.get("leaseTransitions")
        if isinstance(transitions, int) and transitions < 0:
            yield invalid("spec.leaseTransitions", transitions, "must be greater or equal than 0")


def to_micros(obj: Json, *fields: str) -> None:
    """Write times with six digits behind the point; what is no time is left to the schema."""
    for field in fields:
        text = obj.get(field)
        moment = seconds(text) if isinstance(text, str) else None
        if moment is not None:
            obj[field] = micro_timestamp(moment)
