"""What a job says about notifications: which events, and which addresses are told of them.

    unisono.dev/notify       words, separated by commas or spaces: begin, end, fail, preempt, delay,
                             time-limit, time-limit-90, -80, -50, invalid-dependency; all: all but
                             those about time limits; none; array-tasks: each task of an array
                             instead of the whole
    unisono.dev/notify-to    addresses, separated by commas or spaces; the policy says which
                             addresses jobs may name. Without it, the user of the job is told.

`end` alone also tells of failures, as in Slurm: the job has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from unisono.kinds.nearest import did_you_mean
from unisono.kinds.notes import Notes

Event = Literal[
    "begin",
    "end",
    "fail",
    "preempt",
    "delay",
    "time-limit",
    "time-limit-90",
    "time-limit-80",
    "time-limit-50",
    "invalid-dependency",
]
EVENTS: tuple[Event, ...] = (
    "begin",
    "end",
    "fail",
    "preempt",
    "delay",
    "time-limit",
    "time-limit-90",
    "time-limit-80",
    "time-limit-50",
    "invalid-dependency",
)
# How much of a time limit is over then.
SHARES: Mapping[Event, float] = {
    "time-limit-50": 0.5,
    "time-limit-80": 0.8,
    "time-limit-90": 0.9,
    "time-limit": 1.0,
}
EACH_TASK = "array-tasks"
ALL = "all"
_NONE = "none"
_OF_ALL = frozenset(one for one in EVENTS if one not in SHARES)
NOTIFY = "unisono.dev/notify"
NOTIFY_TO = "unisono.dev/notify-to"
USER = "unisono.dev/user"
# On a Workload, or an array of Slurm's: which events were told, for the next leader to know.
NOTIFIED = "unisono.dev/notified"
# What a Workload repeats of its job.
NOTIFYING = (NOTIFY, NOTIFY_TO)

# More than people type by hand; each costs a message of its own.
MOST_ADDRESSES = 16
_MOST_WORDS = 32  # that are compared with events; there are half as many
_MOST_LETTERS = 254  # of an address, RFC 5321
_BETWEEN = re.compile(r"[,\s]+")
# No quoted local parts, and nothing that means something in a header or to a shell.
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def words_of(text: str) -> list[str]:
    """Return the words of an annotation.

    >>> words_of("begin, end fail")
    ['begin', 'end', 'fail']
    """
    return [one for one in _BETWEEN.split(text) if one]


def events_of(annotations: Mapping[str, object]) -> frozenset[Event]:
    """Return the events that a job asks for; words that are unknown count for none.

    >>> sorted(events_of({"unisono.dev/notify": "end,time-limit-80,supper"}))
    ['end', 'time-limit-80']
    >>> sorted(events_of({"unisono.dev/notify": "all"}))
    ['begin', 'delay', 'end', 'fail', 'invalid-dependency', 'preempt']
    """
    words = {one.lower() for one in words_of(str(annotations.get(NOTIFY) or ""))}
    if _NONE in words:
        return frozenset()
    found = frozenset(one for one in EVENTS if one in words)
    return found | _OF_ALL if ALL in words else found


def expanded(words: tuple[str, ...]) -> frozenset[Event]:
    """Return the events of a rule of the policy, whose words were checked before."""
    return events_of({NOTIFY: " ".join(words)})


def tells_each_task(annotations: Mapping[str, object]) -> bool:
    """Say whether each task of an array is told of, and not the array as a whole."""
    return EACH_TASK in words_of(str(annotations.get(NOTIFY) or "").lower())


def is_address(text: str) -> bool:
    """Say whether a text is a mail address.

    >>> is_address("ada@example.org"), is_address("ada"), is_address("a@b\\nBcc: c@d")
    (True, False, False)
    """
    return len(text) <= _MOST_LETTERS and _ADDRESS.fullmatch(text) is not None


def is_domain(text: str) -> bool:
    """Say whether a text can stand behind the @ of an address."""
    return is_address(f"a@{text}")


def is_user_name(text: str) -> bool:
    """Say whether a text is the name of a user, who has an address in the policy's domain."""
    return len(text) <= _MOST_LETTERS and _PLAIN_NAME.fullmatch(text) is not None


def wrong_with_notifying(annotations: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the annotations of which something has no effect, and why.

    >>> dict(wrong_with_notifying({"unisono.dev/notify": "ende"}))
    {'metadata.annotations[unisono.dev/notify]': 'ende is no event; did you mean "end"?'}
    """
    path = f"metadata.annotations[{NOTIFY}]"
    known = (*EVENTS, ALL, _NONE, EACH_TASK)
    for word in words_of(str(annotations.get(NOTIFY) or ""))[:_MOST_WORDS]:
        if word.lower() not in known:
            yield path, f"{word} is no event{did_you_mean(word, known) or _listed(known)}"
    path = f"metadata.annotations[{NOTIFY_TO}]"
    named = words_of(str(annotations.get(NOTIFY_TO) or ""))
    for word in named[:MOST_ADDRESSES]:
        if not is_address(word) and not is_user_name(word):
            yield path, f"{word} is neither a mail address nor the name of a user"
    if len(named) > MOST_ADDRESSES:
        yield path, f"names {len(named)} addresses; only the first {MOST_ADDRESSES} are told"
    if named and not annotations.get(NOTIFY):
        yield path, f"has no effect without {NOTIFY}, which says of which events"


def read_notifying(annotations: Mapping[str, object], notes: Notes) -> None:
    """Warn about what a job says of notifications and what has no effect."""
    if NOTIFY in annotations or NOTIFY_TO in annotations:
        for path, reason in wrong_with_notifying(annotations):
            notes.warn("FieldIgnored", path, reason)


def _listed(known: tuple[str, ...]) -> str:
    return f"; known are {', '.join(known)}"
