"""Leader election by Lease: the rules, without loop or network, and the candidate that takes part.

A Lease says which replica holds it and for how long without renewal. Clocks of machines are never
compared: a candidate counts, on its own monotonic clock, how long the record has not *changed*
since it first saw it so (kube-api.md, 4.4).

    the holder renews every 2 s; after 10 s without success it stops by itself
    another replica may take over 15 s after it last saw the record change

The five seconds in between are why two replicas never lead at once, however slow either is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded, within
from unisono.kube.errors import (
    AlreadyExists,
    Conflict,
    KubeError,
    NotFound,
    NotLeading,
)
from unisono.kube.form import Json
from unisono.kube.mapping import LEASE

LEASE_S = 15
RENEW_DEADLINE_S = 10.0
RETRY_S = 2.0

Action = Literal["create", "take", "renew", "wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
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

    def __init__(self, me: str, terms: LeaseTimes = LeaseTimes()) -> None:  # frozen
        """Begin without any knowledge of the lease."""
        self.me = me
        self.terms = terms
        self._seen: Json | None = None
        self._record = Record()
        self._changed_at = 0.0
        self._renewed_at: float | None = None

    @property
    def holder(self) -> str:
        """The replica that holds the lease, as far as we know; empty if none does."""
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
        assert self._renewed_at is not None, "only a leader can stop leading"
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
        """Return the lease to write when we go: without a holder, to be taken at once."""
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
        # The resource version comes along, so this write fails if another replica was faster.
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


# Candidates look a little more often than the holder renews, each in its own rhythm: one that saw
# the last renewal late still acts within lease + retry of it.
_SOONEST = 0.7
_LATEST = 0.85
# A polite end must not take longer than the standby would need anyway.
_RELEASE_S = 2.0
# Less than this is rounding, not time.
_TICK_S = 0.001


class Candidate:
    """One replica that would like to lead."""

    def __init__(
        self,
        client: Client,
        me: str,
        *,
        clock: Clock,
        random_source: random.Random,
        namespace: str,
        name: str = "unisono",
        terms: LeaseTimes | None = None,
        on_leader: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare; `me` must be unique among all processes there ever were (host and uuid)."""
        # Its own tries are enough, and it must be able to write before it leads.
        self._client = client.variant(most_tries=1, permit=_always)
        self._clock = clock
        self._random_source = random_source
        self._namespace = namespace
        self._name = name
        self._on_leader = on_leader
        self.election = Election(me, terms if terms is not None else LeaseTimes())
        self.last_error: KubeError | None = None

    def is_leading(self) -> bool:
        """Say whether we lead at this moment."""
        return self.election.is_leading(self._clock.monotonic())

    def permit(self) -> None:
        """Raise NotLeading unless we lead: for clients of a leader."""
        if not self.is_leading():
            raise NotLeading(f"{self.election.me} does not lead; {self._holder()} does")

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait to lead, then work until the work ends or the lease is lost."""
        await self._acquire()
        try:
            await guarded(self._keep(), work())
        finally:
            await self._let_go()

    # --- before ----------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        while True:
            await self._try_once(self.election.terms.renew_deadline_s)
            if self.is_leading():
                return
            await self._clock.sleep(self._rest())

    def _rest(self) -> float:
        """Return how long to wait: a usual while, but not beyond the end of the lease."""
        usual = self.election.terms.retry_s * self._random_source.uniform(_SOONEST, _LATEST)
        if self.election.lease is None or not self.election.holder:
            return usual
        left = self.election.expires_at() - self._clock.monotonic()
        return max(min(usual, left), _TICK_S) if left > 0 else usual

    # --- while -----------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(self.election.terms.retry_s)
            left = self.election.leads_until() - self._clock.monotonic()
            if left > 0:
                await self._try_once(left)
            if not self.is_leading():
                why = f": {self.last_error}" if self.last_error is not None else ""
                raise NotLeading(f"{self.election.me} {self._loss()}{why}")

    async def _try_once(self, patience_s: float) -> None:
        """Do what the election wants; if a write is lost, the next read tells."""
        before = self.election.holder
        try:
            await within(self._clock, patience_s, self._act())
            self.last_error = None
        except (Conflict, AlreadyExists, NotFound):
            await self._look(patience_s)
        except KubeError as error:
            self.last_error = error
        except TimeoutError:
            pass  # then the deadline has passed, and that is what counts
        if self._on_leader is not None and self.election.holder != before:
            self._on_leader(self.election.holder)

    async def _act(self) -> None:
        election = self.election
        if not self.is_leading():
            election.saw(await self._read(), self._clock.monotonic())
        action = election.action(self._clock.monotonic())
        if action == "wait":
            return
        claim = election.claim(self._name, self._namespace, self._clock.now())
        asked_at = self._clock.monotonic()
        write = self._client.create if action == "create" else self._client.update
        written = await write(claim)
        election.wrote(written, asked_at, self._clock.monotonic())

    async def _look(self, patience_s: float) -> None:
        """Read the lease of a faster writer, so that we stop at once if there is another leader."""
        try:
            lease = await within(self._clock, patience_s, self._read())
        except (KubeError, TimeoutError):
            return
        self.election.saw(lease, self._clock.monotonic())

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(LEASE, self._name, self._namespace)
        except NotFound:
            return None

    # --- after -----------------------------------------------------------------------------------

    async def _let_go(self) -> None:
        if not self.is_leading():
            return
        lease = self.election.release(self._name, self._namespace, self._clock.now())
        try:
            written = await within(self._clock, _RELEASE_S, self._client.update(lease))
        except (KubeError, TimeoutError):
            return  # then it has to expire
        self.election.wrote(written, self._clock.monotonic(), self._clock.monotonic())

    def _loss(self) -> str:
        """Say how the lease was lost: to another replica, or because it was not renewed in time."""
        if self.election.holder not in ("", self.election.me):
            return f"lost the lease {self._name} to {self.election.holder}"
        within_s = self.election.terms.renew_deadline_s
        return f"could not renew the lease {self._name} within {within_s:g} s"

    def _holder(self) -> str:
        return self.election.holder or "no replica"


def _always() -> None:
    """Permit writing the lease itself."""
