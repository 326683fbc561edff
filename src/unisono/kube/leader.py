"""Who leads: the rules of an election by Lease, without time, loop or network of their own.

A Lease says who holds it and for how long without renewal. Clocks of machines are never compared:
a candidate counts, on its own monotonic clock, how long the record has not *changed* since it first
saw it so (kube-api.md, 4.4).

    holder renews every 2 s; after 10 s without success it stops by itself
    others may take over 15 s after they last saw the record change

The five seconds in between are why two replicas never lead at once, however slow either is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import msgspec

from unisono.kube.form import Json

LEASE_S = 15
RENEW_DEADLINE_S = 10.0
RETRY_S = 2.0

Action = Literal["create", "take", "renew", "wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """For how long what holds."""

    lease_s: int = LEASE_S
    renew_deadline_s: float = RENEW_DEADLINE_S
    retry_s: float = RETRY_S

    def __post_init__(self) -> None:
        """Refuse terms under which two could lead at once."""
        assert self.retry_s < self.renew_deadline_s < self.lease_s, "retry < deadline < lease"


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `spec` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Election:
    """What one candidate knows, and what it should do next."""

    def __init__(self, me: str, terms: Terms = Terms()) -> None:  # frozen
        """Begin as somebody who knows nothing."""
        self.me = me
        self.terms = terms
        self._seen: Json | None = None
        self._record = Record()
        self._changed_at = 0.0
        self._renewed_at: float | None = None

    @property
    def holder(self) -> str:
        """Who holds the lease, as far as we know; empty if nobody does."""
        return self._record.holder_identity or ""

    @property
    def lease(self) -> Json | None:
        """The lease as we last saw it."""
        return self._seen

    # --- what happened ---------------------------------------------------------------------------

    def saw(self, lease: Json | None, now: float) -> None:
        """The lease was read; None if there is none."""
        self._renewed_at = self._renewed_at if self._is_mine(lease) else None
        version = _version(lease)
        if lease is None or version != _version(self._seen):
            self._changed_at = now
        self._seen = lease
        spec = lease.get("spec") if lease is not None else None
        self._record = msgspec.convert(spec or {}, Record)

    def wrote(self, lease: Json, asked_at: float, now: float) -> None:
        """Our own write succeeded; it counts from when it was sent, which is the careful end."""
        self.saw(lease, now)
        self._renewed_at = asked_at if self.holder == self.me else None

    def _is_mine(self, lease: Json | None) -> bool:
        return lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self.me

    # --- what it means ---------------------------------------------------------------------------

    def is_leading(self, now: float) -> bool:
        """Say whether we may act as leader at this moment."""
        if self._renewed_at is None:
            return False
        return now - self._renewed_at < self.terms.renew_deadline_s

    def leads_until(self) -> float:
        """Return when we stop being the leader unless the lease is renewed."""
        assert self._renewed_at is not None, "nobody who does not lead can stop"
        return self._renewed_at + self.terms.renew_deadline_s

    def action(self, now: float) -> Action:
        """Say what to do now."""
        if self._seen is None:
            return "create"
        if self._renewed_at is not None:
            return "renew"
        # Our own name means that a claim of ours arrived whose answer was lost: names are unique.
        if self.holder in ("", self.me) or now >= self.expires_at():
            return "take"
        return "wait"

    def expires_at(self) -> float:
        """Return when the present holder counts as dead if nothing changes."""
        return self._changed_at + (self._record.lease_duration_seconds or self.terms.lease_s)

    # --- what to write ---------------------------------------------------------------------------

    def claim(self, name: str, namespace: str, wall_now: float) -> Json:
        """Return the lease to write so that it is ours for another while."""
        stamp = micro_time(wall_now)
        mine = self.holder == self.me
        record = Record(
            holder_identity=self.me,
            lease_duration_seconds=self.terms.lease_s,
            acquire_time=self._record.acquire_time if mine else stamp,
            renew_time=stamp,
            lease_transitions=(self._record.lease_transitions or 0)
            + (0 if mine or self._seen is None else 1),
        )
        return self._lease(record, name, namespace)

    def release(self, name: str, namespace: str, wall_now: float) -> Json:
        """Return the lease to write when we go: held by nobody, to be taken at once."""
        stamp = micro_time(wall_now)
        record = Record(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=stamp,
            renew_time=stamp,
            lease_transitions=self._record.lease_transitions or 0,
        )
        return self._lease(record, name, namespace)

    def _lease(self, record: Record, name: str, namespace: str) -> Json:
        # The resource version comes along, so whoever was faster makes this write fail.
        metadata = (
            dict(self._seen["metadata"])
            if self._seen is not None
            else {"name": name, "namespace": namespace}
        )
        metadata.pop("managedFields", None)
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": msgspec.to_builtins(record),
        }


def micro_time(seconds: float) -> str:
    """Write a time as leases do: UTC with six digits.

    >>> micro_time(1767268800.25)
    '2026-01-01T12:00:00.250000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _version(lease: Json | None) -> str:
    return "" if lease is None else str(lease["metadata"].get("resourceVersion", ""))
