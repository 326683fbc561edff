"""Lifecycle policies of a Volcano job or task: what happens is an event or an exit code.

The messages hold the phrases that Volcano's own webhook refuses with, since its tools look for
them.
"""

from __future__ import annotations

from unisono.kinds.decode import Schema
from unisono.kinds.notes import Notes
from unisono.kinds.scalar import Duration

ANY = "*"
EVENTS = (
    *(ANY, "PodFailed", "PodEvicted", "PodPending", "Unknown"),
    *("TaskCompleted", "TaskFailed", "JobUpdated"),
)
ACTIONS = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition"),
    *("TerminateJob", "CompleteJob", "ResumeJob"),
)


class LifecyclePolicy(Schema, frozen=True, kw_only=True):
    """What to do when something happens to a pod, a task or the job."""

    action: str = ""
    event: str = ""
    events: tuple[str, ...] = ()
    exit_code: int | None = None
    timeout: Duration | None = None

    def all_events(self) -> tuple[str, ...]:
        """Return every event that it names, each once."""
        named = (*self.events, self.event) if self.event else self.events
        return tuple(dict.fromkeys(named))


def check_policies(policies: tuple[LifecyclePolicy, ...], path: str, notes: Notes) -> None:
    """Report policies that Volcano refuses: each event and exit code has one policy."""
    at_event: dict[str, int] = {}
    at_code: dict[int, int] = {}
    for index, policy in enumerate(policies):
        at, events, code = f"{path}[{index}]", policy.all_events(), policy.exit_code
        if events and code is not None:
            notes.problem(at, "must not specify event and exitCode simultaneously")
        elif not events and code is None:
            notes.problem(at, "either event and exitCode should be specified")
        for event in events:
            if event not in EVENTS:
                message = f'invalid policy event "{event}"; there are {", ".join(EVENTS)}'
                notes.problem(f"{at}.event", message)
            elif event in at_event:
                message = f"duplicate event {event}: {path}[{at_event[event]}] has it, too"
                notes.problem(f"{at}.event", message)
            at_event.setdefault(event, index)
        if code == 0:
            notes.problem(f"{at}.exitCode", "0 is not a valid error code: it says success")
        elif code is not None and code in at_code:
            message = f"duplicate exitCode {code}: {path}[{at_code[code]}] has it, too"
            notes.problem(f"{at}.exitCode", message)
        if code is not None:
            at_code.setdefault(code, index)
        if policy.action not in ACTIONS:
            message = f'invalid policy action "{policy.action}"; there are {", ".join(ACTIONS)}'
            notes.problem(f"{at}.action", message)
    if ANY in at_event and len(at_event) > 1:
        message = "if there's * here, no other policy should be here: * is every event"
        notes.problem(f"{path}[{at_event[ANY]}].event", message)
