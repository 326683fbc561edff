"""Carries one call out: waits for its turn, tries, and tries again where that is safe.

What may be repeated (kube-api.md, 4.2):

    no connection at all                     everything: the API has not seen it
    connection lost, 500, 502, 503, 504      calls that are `repeatable`: reads, and writes that
                                             cannot happen twice (PUT with a resource version,
                                             server-side apply, DELETE with a uid)
    429                                      everything: the API has turned it away; the lane waits
                                             as long as the API wishes

A decision is never repeated here, whatever became of it (`Call.once`): between two tries the quota
or the node that it counts on may be gone, and only its caller can tell. For the same reason it
is not sent at all if what it was decided on has changed while it waited for its turn (`holds`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from unisono.kube.clock import Clock
from unisono.kube.errors import Expired, StatusError, TooManyRequests, Unreachable, status_error
from unisono.kube.priority_lanes import Lane, Lanes
from unisono.kube.rate_limit import Backoff
from unisono.kube.transport import (
    Answer,
    InProcessTransport,
    Stream,
    Transport,
    WriteRequest,
    WriteResult,
)

# With the pauses below about half a minute: a restart of an API server, no longer.
MOST_TRIES = 10
PAUSES = Backoff(first_s=0.4, most_s=10.0, jitter=-0.5)
# What a 429 means that does not say how long.
DEFAULT_RETRY_AFTER_S = 1.0
TIMEOUT_S = 60.0
_LATER = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, and what may be done with it."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    lane: Lane = Lane.NORMAL
    repeatable: bool = False
    once: bool = False  # sent at most once, whatever the answer
    # Asked when its turn has come, right before it is sent: False if it must not be any more.
    holds: Callable[[], bool] | None = None
    timeout_s: float = TIMEOUT_S

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"


def permit_all() -> None:
    """Permit every write."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What happened so far, for metrics."""

    calls: int = 0
    retries: int = 0
    refused: int = 0
    unreachable: int = 0
    # By method and resource: what an API server has to store is what it is slow at.
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)


def resource_in(path: str) -> str:
    """Return what a path is about: the resource and, behind a slash, its subresource.

    >>> resource_in("/api/v1/namespaces/team/pods/worker-0/binding")
    'pods/binding'
    >>> resource_in("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/all")
    'clusterqueues'
    """
    parts = path.strip("/").split("/")
    parts = parts[2 if parts[0] == "api" else 3 :] or [path]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    return "/".join((parts[0], *parts[2:3]))


def pause_before_retry(
    error: StatusError | Unreachable,
    *,
    tries: int,
    repeatable: bool,
    random_source: random.Random,
) -> float | None:
    """Return how long to wait before trying again after so many tries, or None to give up."""
    match error:
        case TooManyRequests():
            if error.has_cause("DisruptionBudget"):
                return None  # an answer about the pod, not about load
            wished = error.retry_after_s
            return DEFAULT_RETRY_AFTER_S if wished is None else wished
        case StatusError(code=code) if code not in _LATER or not repeatable:
            return None
        case Unreachable(sent=True) if not repeatable:
            return None
    wished = error.retry_after_s if isinstance(error, StatusError) else None
    return max(PAUSES.delay(tries, random_source), wished or 0.0)


class Caller:
    """Calls one API as one user."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        random_source: random.Random,
        lanes: Lanes | None = None,
        most_tries: int = MOST_TRIES,
        permit: Callable[[], None] = permit_all,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare; `permit` is asked before every write and raises if there must be none."""
        self._transport = transport
        self._direct = transport if isinstance(transport, InProcessTransport) else None
        self._clock = clock
        self._random_source = random_source
        self._lanes = lanes if lanes is not None else Lanes(clock)
        self._most_tries = most_tries
        self._permit = permit
        self._on_warning = on_warning
        self.counts = Counts()

    def variant(
        self, *, most_tries: int | None = None, permit: Callable[[], None] | None = None
    ) -> Caller:
        """Return a caller that shares everything but these."""
        other = Caller(
            self._transport,
            clock=self._clock,
            random_source=self._random_source,
            lanes=self._lanes,
            most_tries=self._most_tries if most_tries is None else most_tries,
            permit=self._permit if permit is None else permit,
            on_warning=self._on_warning,
        )
        other.counts = self.counts
        return other

    @property
    def direct(self) -> InProcessTransport | None:
        """The transport, if its API is in this process and takes objects as they are."""
        return self._direct

    async def write(
        self, direct: InProcessTransport, orders: Sequence[WriteRequest]
    ) -> list[WriteResult]:
        """Write without a request; an API in the same process needs no protection from us."""
        self._permit()
        # Nothing waits for its turn here, so all of them are asked before the first is stored.
        hold = [order.holds is None or order.holds() for order in orders]
        sent = [order for order, holds in zip(orders, hold, strict=True) if holds]
        self.counts.calls += len(sent)
        results = iter(await direct.write(sent))
        answers = [
            next(results) if holds else Expired(f"{order.name}: what it was decided on has changed")
            for order, holds in zip(orders, hold, strict=True)
        ]
        self.counts.refused += sum(isinstance(one, StatusError) for one in answers)
        return answers

    async def call(self, call: Call) -> Answer:
        """Return a successful answer; raises StatusError or Unreachable."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._once(call)
            except (StatusError, Unreachable) as error:
                self._count(error)
                pause = pause_before_retry(
                    error,
                    tries=tries,
                    repeatable=call.repeatable,
                    random_source=self._random_source,
                )
                if isinstance(error, TooManyRequests) and pause is not None:
                    self._lanes.pause(call.lane, pause)
                    pause = 0.0  # the lane itself keeps the time
                if pause is None or call.once or tries >= self._most_tries:
                    raise
            self.counts.retries += 1
            if pause > 0:
                await self._clock.sleep(pause)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[Stream]:
        """Open a stream; only its beginning takes a turn, and nothing is tried twice."""
        async with AsyncExitStack() as stack:
            async with self._lanes.turn(call.lane):
                self.counts.calls += 1
                opening = self._transport.stream(
                    call.method,
                    call.path,
                    query=call.query,
                    headers=call.headers,
                    body=call.body,
                    timeout=call.timeout_s,
                )
                try:
                    stream = await stack.enter_async_context(opening)
                except Unreachable as error:
                    self._count(error)
                    raise
            if stream.code >= 300:
                raise await self._refused(call, stream)
            yield stream

    async def _refused(self, call: Call, stream: Stream) -> StatusError:
        body = b"".join([chunk async for chunk in stream.chunks])
        refused = status_error(stream.code, body, retry_after=stream.headers.get("retry-after", ""))
        self._count(refused)
        if isinstance(refused, TooManyRequests):
            self._lanes.pause(call.lane, refused.retry_after_s or DEFAULT_RETRY_AFTER_S)
        return refused

    async def _once(self, call: Call) -> Answer:
        resource = resource_in(call.path) if call.writes else ""
        async with self._lanes.turn(call.lane) as turn:
            if call.writes:
                self._permit()
                if call.holds is not None and not call.holds():
                    raise Expired(f"{call.method} {call.path}: what it was decided on has changed")
                self.counts.writes[call.method, resource] += 1
            self.counts.calls += 1
            answer = await self._transport.request(
                call.method,
                call.path,
                query=call.query,
                headers=call.headers,
                body=call.body,
                timeout=call.timeout_s,
            )
            if call.writes and answer.code < 300:  # a page of a list takes as long as it is large
                self._lanes.answered(turn, f"{call.method} {resource}")
        if self._on_warning is not None:
            for warning in answer.warnings:
                self._on_warning(warning)
        if answer.code >= 300:
            raise status_error(
                answer.code, answer.body, retry_after=answer.headers.get("retry-after", "")
            )
        return answer

    def _count(self, error: StatusError | Unreachable) -> None:
        if isinstance(error, StatusError):
            self.counts.refused += 1
        else:
            self.counts.unreachable += 1
