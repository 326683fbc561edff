"""What is still to be sent: bounded, limited per recipient, and tried again.

    post ──▶ the recipient's line ──take──▶ in flight ──delivered──▶ settled
                     ▲                          │
                     └──── later, up to ────────┴─ failed ──▶ settled, and counted as failed

The last message that a recipient's limit allows is a summary of everything in that recipient's
line, so a storm of events becomes a few messages and one list. Namespaces take turns in each line,
and when all lines are full the namespace with most letters loses its newest one: a storm of one
tenant costs others neither their messages nor their place in a summary. What has been settled is
remembered until the controller has recorded it: an event is told once, however often its Workload
changes.

Nothing here is stored: after a crash the controller finds the same events again and posts them. All
times are in seconds and come from the caller.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from unisono.notify.messages import Notice
from unisono.notify.recipients import Target

# Messages in all lines together: some megabytes. What comes on top is dropped and counted.
MOST_WAITING = 5000
# Settled notices whose record is not written yet; a forgotten one could be told twice.
MOST_SETTLED = 20_000
# About an hour in all: mail servers are restarted, and webhooks have incidents.
MOST_TRIES = 10
_FIRST_PAUSE_SECONDS = 15.0
_LONGEST_PAUSE_SECONDS = 1200.0

Result = Literal["sent", "failed", "dropped"]
RESULTS: tuple[Result, ...] = ("sent", "failed", "dropped")
CHANNELS = ("mail", "webhook")


class NotSent(Exception):
    """A message did not arrive."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        """Say why, and whether it would be in vain to try again."""
        super().__init__(why)
        self.is_final = is_final


class Login(msgspec.Struct, frozen=True):
    """What the Secret of a mail server says."""

    username: str = ""
    password: str = ""
    authority: str = ""  # certificates in PEM that are trusted besides those of the system


class Letter(msgspec.Struct, frozen=True):
    """One notice for one target."""

    target: Target
    notice: Notice

    @property
    def ident(self) -> str:
        """What tells it from all others."""
        return f"{self.target.key} {self.notice.ident}"

    @property
    def namespace(self) -> str:
        """The tenant whose job it is about."""
        return self.notice.subject.namespace


class Delivery(msgspec.Struct, frozen=True):
    """Letters to one target that are sent as one message."""

    target: Target
    letters: tuple[Letter, ...]

    @property
    def notices(self) -> Sequence[Notice]:
        """What the message is about."""
        return [one.notice for one in self.letters]


class _Letters:
    """The letters of one line: what came back, then one of each namespace in turn."""

    def __init__(self) -> None:
        self._back: deque[Letter] = deque()
        self._of: dict[str, deque[Letter]] = {}  # by namespace, the next one first

    def __len__(self) -> int:
        return len(self._back) + sum(map(len, self._of.values()))

    def add(self, letter: Letter) -> None:
        self._of.setdefault(letter.namespace, deque()).append(letter)

    def put_back(self, letters: Sequence[Letter]) -> None:
        self._back.extendleft(reversed(letters))

    def next(self) -> Letter:
        if self._back:
            return self._back.popleft()
        namespace = next(iter(self._of))
        letters = self._of.pop(namespace)
        found = letters.popleft()
        if letters:
            self._of[namespace] = letters  # behind all others
        return found

    def newest_of(self, namespace: str) -> Letter | None:
        """Take out the newest letter of a namespace, if it has one here."""
        letters = self._of.get(namespace)
        if letters is None:
            return None
        found = letters.pop()
        if not letters:
            del self._of[namespace]
        return found


@dataclass(slots=True)
class _Line:
    """What waits for one target."""

    letters: _Letters = field(default_factory=_Letters)
    sent_at: deque[float] = field(default_factory=deque)  # within the period of the limit
    tries: int = 0
    not_before: float = 0.0
    is_in_flight: bool = False


class Outbox:
    """The lines of all targets."""

    def __init__(self, *, count: int = 30, per_s: float = 3600.0) -> None:
        """Begin empty; a target gets `count` messages within `per_s` seconds."""
        self._count, self._per_s = count, per_s
        self._lines: dict[str, _Line] = {}
        self._waiting: set[str] = set()  # letters in lines and in flight
        self._of: Counter[str] = Counter()  # the same by namespace
        self._settled: dict[str, None] = {}  # the latest last
        self.counts: dict[tuple[str, str], int] = {
            (channel, result): 0 for channel in CHANNELS for result in RESULTS
        }

    def __len__(self) -> int:
        """Return how many letters are not settled."""
        return len(self._waiting)

    def limit(self, *, count: int, per_s: float) -> None:
        """Use another limit from now on."""
        self._count, self._per_s = count, per_s

    # ---- the controller's side ---------------------------------------------------------------

    def post(self, letter: Letter) -> bool:
        """Take a letter, unless it is known already; say whether it is settled."""
        ident = letter.ident
        if ident in self._settled:
            return True
        if ident in self._waiting:
            return False
        if len(self._waiting) >= MOST_WAITING and not self._makes_room(letter.namespace):
            self._settle(letter, "dropped")
            return True
        self._waiting.add(ident)
        self._of[letter.namespace] += 1
        self._lines.setdefault(letter.target.key, _Line()).letters.add(letter)
        return False

    def _makes_room(self, namespace: str) -> bool:
        """Drop the newest letter of the namespace with most, unless that would be no fairer."""
        largest, count = max(self._of.items(), key=lambda one: (one[1], one[0]))
        if count <= self._of[namespace] + 1:
            return False
        for line in self._lines.values():
            dropped = line.letters.newest_of(largest)
            if dropped is not None:
                self._settle(dropped, "dropped")
                return True
        return False  # all of them are on their way

    def forget(self, letter: Letter) -> None:
        """Drop the memory of a settled letter whose record is written."""
        self._settled.pop(letter.ident, None)

    # ---- the sender's side -------------------------------------------------------------------

    def take(self, now: float) -> Iterator[Delivery]:
        """Yield what is to be sent now; each target has one message in flight at a time."""
        for key in list(self._lines):
            line = self._lines[key]
            if line.is_in_flight or not line.letters or now < self._opens_at(line, now):
                continue
            left = self._count - len(line.sent_at)
            size = 1 if left > 1 else len(line.letters)
            letters = tuple(line.letters.next() for _ in range(size))
            line.is_in_flight = True
            yield Delivery(letters[0].target, letters)

    def next_due(self, now: float) -> float | None:
        """Return when there is something to send; None if not before a letter is posted."""
        lines = (line for line in self._lines.values() if line.letters and not line.is_in_flight)
        return min((max(now, self._opens_at(line, now)) for line in lines), default=None)

    def delivered(self, delivery: Delivery, now: float) -> None:
        """Note that a message has arrived."""
        line = self._lines[delivery.target.key]
        line.sent_at.append(now)
        self._end(line, delivery, "sent")

    def failed(self, delivery: Delivery, now: float, *, is_final: bool = False) -> bool:
        """Note that a message did not arrive; say whether it was given up."""
        line = self._lines[delivery.target.key]
        line.tries += 1
        if is_final or line.tries >= MOST_TRIES:
            self._end(line, delivery, "failed")
            return True
        pause = min(_FIRST_PAUSE_SECONDS * 2.0 ** (line.tries - 1), _LONGEST_PAUSE_SECONDS)
        line.not_before = now + pause
        line.letters.put_back(delivery.letters)
        line.is_in_flight = False
        return False

    def tidy(self, now: float) -> None:
        """Forget targets without letters whose limit has all its messages again."""
        for key, line in list(self._lines.items()):
            self._opens_at(line, now)
            if not line.letters and not line.sent_at and not line.is_in_flight:
                del self._lines[key]

    def _opens_at(self, line: _Line, now: float) -> float:
        while line.sent_at and line.sent_at[0] <= now - self._per_s:
            line.sent_at.popleft()
        limited = line.sent_at[0] + self._per_s if len(line.sent_at) >= self._count else 0.0
        return max(line.not_before, limited)

    def _end(self, line: _Line, delivery: Delivery, result: Result) -> None:
        line.tries, line.not_before, line.is_in_flight = 0, 0.0, False
        for letter in delivery.letters:
            self._settle(letter, result)

    def _settle(self, letter: Letter, result: Result) -> None:
        if letter.ident in self._waiting:
            self._waiting.discard(letter.ident)
            self._of[letter.namespace] -= 1
            if not self._of[letter.namespace]:
                del self._of[letter.namespace]
        self._settled[letter.ident] = None
        if len(self._settled) > MOST_SETTLED:
            del self._settled[next(iter(self._settled))]
        self.counts[letter.target.channel, result] += 1
