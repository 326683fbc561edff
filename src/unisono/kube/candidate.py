"""Takes part in an election: waits to lead, does the work while it leads, and lets go.

    await candidate.lead(work)

`work` runs only while we lead. When the lease cannot be renewed in time the work is cancelled and
NotLeading is raised: the process should end then, and come back as a new candidate. Writes of
clients that were made with `permit=candidate.permit` fail from that very moment, even if the work
does not notice the cancellation yet. When the work ends by itself or is cancelled from outside, the
lease is given back, so that another replica takes over within two seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded, within
from unisono.kube.form import Json
from unisono.kube.leader import Election, Terms
from unisono.kube.mapping import LEASE
from unisono.kube.trouble import (
    AlreadyExists,
    Conflict,
    KubeTrouble,
    NotFound,
    NotLeading,
)

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
        chance: random.Random,
        namespace: str,
        name: str = "unisono",
        terms: Terms | None = None,
        on_leader: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare; `me` must be unique among all processes there ever were (host and uuid)."""
        # Its own tries are enough, and it must be able to write before it leads.
        self._client = client.variant(most_tries=1, permit=_always)
        self._clock = clock
        self._chance = chance
        self._namespace = namespace
        self._name = name
        self._on_leader = on_leader
        self.election = Election(me, terms if terms is not None else Terms())
        self.last_trouble: KubeTrouble | None = None

    def is_leading(self) -> bool:
        """Say whether we lead at this moment."""
        return self.election.is_leading(self._clock.monotonic())

    def permit(self) -> None:
        """Raise NotLeading unless we lead: for clients whose writes only a leader may make."""
        if not self.is_leading():
            raise NotLeading(f"{self.election.me} does not lead; {self._holder()} does")

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait to lead, then work until the work ends or the lease is lost."""
        await self._win()
        try:
            await guarded(self._keep(), work())
        finally:
            await self._let_go()

    # --- before ----------------------------------------------------------------------------------

    async def _win(self) -> None:
        while True:
            await self._try_once(self.election.terms.renew_deadline_s)
            if self.is_leading():
                return
            await self._clock.sleep(self._rest())

    def _rest(self) -> float:
        """Return how long to wait: a usual while, but not beyond the end of the lease."""
        usual = self.election.terms.retry_s * self._chance.uniform(_SOONEST, _LATEST)
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
                why = f": {self.last_trouble}" if self.last_trouble is not None else ""
                raise NotLeading(f"{self.election.me} {self._loss()}{why}")

    async def _try_once(self, patience_s: float) -> None:
        """Do what the election wants; whoever was faster or far away, the next time will tell."""
        before = self.election.holder
        try:
            await within(self._clock, patience_s, self._act())
            self.last_trouble = None
        except (Conflict, AlreadyExists, NotFound):
            await self._look(patience_s)
        except KubeTrouble as trouble:
            self.last_trouble = trouble
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
        """Read who was faster, so that we stop at once if that is another leader."""
        try:
            lease = await within(self._clock, patience_s, self._read())
        except (KubeTrouble, TimeoutError):
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
        except (KubeTrouble, TimeoutError):
            return  # then it has to expire
        self.election.wrote(written, self._clock.monotonic(), self._clock.monotonic())

    def _loss(self) -> str:
        """Say how the lease was lost: to somebody, or because it was not renewed in time."""
        if self.election.holder not in ("", self.election.me):
            return f"lost the lease {self._name} to {self.election.holder}"
        within_s = self.election.terms.renew_deadline_s
        return f"could not renew the lease {self._name} within {within_s:g} s"

    def _holder(self) -> str:
        return self.election.holder or "nobody"


def _always() -> None:
    """Permit writing the lease itself."""
