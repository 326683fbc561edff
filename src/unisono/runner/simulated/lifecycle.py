"""The lifecycle of a simulated pod: its containers' states now, and when to look again.

    bound ──start-seconds──▶ Running ──ready-seconds──▶ Ready ──run-seconds──▶ Succeeded | Failed
                                ▲   containers that ended   │
                                └── back-off (CrashLoop…)  ◀┘

Pure: the same pod at the same time gives the same answer. One step goes as far as the phase stays
what it is, so that watchers see every phase, and no phase takes more than one write.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from unisono.control.actions import Json
from unisono.runner.containers import Container, Containers, Running, Waiting
from unisono.runner.lifecycle import next_actions, phase_of
from unisono.runner.simulated.script import Script, script_of, start_seconds
from unisono.runner.status import Failure

_KILLED = 137
_TERMINATED = 143


@dataclass(frozen=True, slots=True)
class NextStatus:
    """The containers' states now, and when they may change."""

    containers: Containers
    again_at: float | None = None
    failure: Failure | None = None
    is_over: bool = False  # stopped for good


@dataclass(frozen=True, slots=True)
class PodLifecycle:
    """One pod, and the scripts of its containers."""

    pod: Json
    attempts: int  # how often its place was tried before
    speed: float  # so many seconds of the pod pass in one of ours

    def script(self, container: Container) -> Script:
        """Return how the present run of a container goes."""
        spec, is_init = _specs(self.pod)[container.name]
        return script_of(self.pod, spec, self.attempts + container.restarts, is_init=is_init)

    def live(self, containers: Containers, seen_at: float, now: float) -> NextStatus:
        """Return the state of a pod that is not deleted; it was first seen at a time."""
        begins = seen_at + start_seconds(self.pod) / self.speed
        if now < begins and not any(_has_run(one) for one in containers):
            return NextStatus(containers, _finite(begins))
        expires = self._expires(seen_at)
        if now >= expires:
            return self._expired(containers, expires)
        phase = (self.pod.get("status") or {}).get("phase", "Pending")
        again: float | None = None
        while True:
            before = containers
            containers, again = self._step(containers, now)
            if containers is before or phase_of(self.pod, containers) != phase:
                break
        if containers is not before:  # the phase changed: the next is another write
            containers = self._without_sidecars(containers, now)
            _, again = self._step(containers, now)
        return NextStatus(
            containers, _finite(min(again if again is not None else math.inf, expires))
        )

    def stop(self, containers: Containers, told_at: float, now: float) -> NextStatus:
        """Return the state of a pod that was deleted at a time."""
        grace = float(self.pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        running = [one for one in containers if isinstance(one.state, Running)]
        ends = {
            one.name: told_at + min(self.script(one).stop_s / self.speed, grace) for one in running
        }
        last = max(ends.values(), default=told_at)
        if now < last:
            return NextStatus(containers, last)
        stopped = []
        for one in running:
            is_killed = self.script(one).stop_s / self.speed > grace
            stopped.append(one.ended(max(ends[one.name], _since(one)), _code(is_killed=is_killed)))
        return NextStatus(containers.put(*stopped), is_over=True)

    # ---- one step ----------------------------------------------------------------------------

    def _step(self, containers: Containers, now: float) -> tuple[Containers, float | None]:
        """Take containers as far as one round of rules does."""
        changed: list[Container] = []
        times: list[float] = []
        for one in containers:
            if isinstance(one.state, Running):
                then, due = self._run(one, one.state, now)
                if then is not one:
                    changed.append(then)
                times.append(due)
        if changed:
            return containers.put(*changed), now
        found = next_actions(self.pod, containers, now, speed=self.speed)
        if found.again_at is not None:
            times.append(found.again_at)
        changed = [*found.waits]
        changed += [self._started(containers.get(name), now) for name in found.start]
        if changed:
            return containers.put(*changed), now
        return containers, min(times, default=None)

    def _without_sidecars(self, containers: Containers, now: float) -> Containers:
        """Return them with the sidecars of a pod that is through stopped."""
        stopped = next_actions(self.pod, containers, now).stop
        return containers.put(*(containers.get(name).ended(now, 0) for name in stopped))

    def _run(self, one: Container, state: Running, now: float) -> tuple[Container, float]:
        """Return a running container as it is now, and when that changes."""
        script = self.script(one)
        ends = state.since + script.run_s / self.speed
        if ends <= now:
            return one.ended(ends, script.exit_code), ends
        ready_at = state.since + script.ready_s / self.speed
        if not state.is_ready and ready_at <= now:
            return replace(one, state=Running(state.since)), ends
        return one, ends if state.is_ready else min(ends, ready_at)

    def _started(self, one: Container, now: float) -> Container:
        then = one.started(now)
        return one.started(now, is_ready=False) if self.script(then).ready_s > 0 else then

    # ---- the whole pod -----------------------------------------------------------------------

    def _expires(self, seen_at: float) -> float:
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        return math.inf if deadline is None else seen_at + float(deadline) / self.speed

    def _expired(self, containers: Containers, at: float) -> NextStatus:
        message = "Pod was active on the node longer than the specified deadline"
        ended = [
            one.ended(max(at, _since(one)), _TERMINATED)
            for one in containers
            if isinstance(one.state, Running)
        ]
        return NextStatus(containers.put(*ended), failure=Failure("DeadlineExceeded", message))


def _specs(pod: Json) -> Mapping[str, tuple[Json, bool]]:
    spec = pod["spec"]
    return {
        **{one["name"]: (one, True) for one in spec.get("initContainers") or ()},
        **{one["name"]: (one, False) for one in spec["containers"]},
    }


def _has_run(container: Container) -> bool:
    return container.last is not None or not isinstance(container.state, Waiting)


def _since(container: Container) -> float:
    return container.state.since if isinstance(container.state, Running) else 0.0


def _code(*, is_killed: bool) -> int:
    return _KILLED if is_killed else _TERMINATED


def _finite(time: float) -> float | None:
    return time if time < math.inf else None
