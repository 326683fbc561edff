"""What is still to be sent: bounded, limited, tried again."""

from __future__ import annotations

import pytest

from unisono.notify import outbox as module
from unisono.notify.events import Happened
from unisono.notify.messages import Notice
from unisono.notify.outbox import MOST_TRIES, Delivery, Letter, Outbox
from unisono.notify.recipients import Mailbox
from unisono.notify.subject import Subject


def letter(number: int = 0, to: str = "ada@example.org", namespace: str = "n") -> Letter:
    subject = Subject(
        uid=f"{namespace}{number}", workload="w", namespace=namespace, kind="Job", name=f"j{number}"
    )
    return Letter(Mailbox(to), Notice(subject, Happened(event="end", mark="m", at=0.0)))


def taken(box: Outbox, now: float) -> list[Delivery]:
    return list(box.take(now))


def sent(box: Outbox, now: float) -> list[int]:
    """Deliver everything that may go now; return the sizes of the messages."""
    sizes = []
    while deliveries := taken(box, now):
        for one in deliveries:
            box.delivered(one, now)
            sizes.append(len(one.letters))
    return sizes


def test_a_letter_is_sent_once_until_its_record_is_written() -> None:
    box = Outbox()
    assert not box.post(letter())
    assert not box.post(letter())
    assert len(box) == 1
    assert sent(box, 0) == [1]
    assert box.post(letter())  # settled: the record may be written
    assert sent(box, 0) == []
    box.forget(letter())
    assert not box.post(letter())


def test_each_recipient_has_one_message_in_flight() -> None:
    box = Outbox()
    for number in range(3):
        box.post(letter(number))
    box.post(letter(0, "bob@example.org"))
    first = taken(box, 0)
    assert [one.target.key for one in first] == [
        "mail to ada@example.org",
        "mail to bob@example.org",
    ]
    assert taken(box, 0) == []
    box.delivered(first[0], 0)
    assert len(taken(box, 0)) == 1


def test_a_storm_becomes_some_messages_and_a_summary_of_the_rest() -> None:
    box = Outbox(count=3, per_s=600)
    for number in range(50):
        box.post(letter(number))
    assert sent(box, 0) == [1, 1, 48]
    box.post(letter(50))
    assert sent(box, 599) == []
    assert box.next_due(1) == 600
    assert sent(box, 600) == [1]
    assert box.counts["mail", "sent"] == 51


def test_what_fails_is_tried_again_later_and_in_order() -> None:
    box = Outbox()
    box.post(letter(0))
    box.post(letter(1))
    (first,) = taken(box, 0)
    assert not box.failed(first, 0)
    assert taken(box, 14) == []
    assert box.next_due(0) == 15
    (again,) = taken(box, 15)
    assert again.letters == first.letters
    box.failed(again, 15)
    assert box.next_due(15) == 45  # twice as long


def test_after_an_hour_it_is_given_up_and_counted() -> None:
    box, now = Outbox(), 0.0
    box.post(letter())
    for number in range(MOST_TRIES):
        (one,) = taken(box, now)
        assert box.failed(one, now) == (number == MOST_TRIES - 1)
        now = box.next_due(now) or now
    assert 3600 <= now <= 7200
    assert box.counts["mail", "failed"] == 1
    assert box.post(letter())  # settled: it is not tried for ever
    assert len(box) == 0


def test_what_is_refused_for_good_is_not_tried_again() -> None:
    box = Outbox()
    box.post(letter())
    (one,) = taken(box, 0)
    assert box.failed(one, 0, is_final=True)
    assert box.next_due(0) is None


def test_what_is_too_much_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    box = Outbox()
    assert [box.post(letter(number)) for number in range(4)] == [False, False, True, True]
    assert box.counts["mail", "dropped"] == 2
    assert sent(box, 0) == [1, 1]


def test_recipients_are_forgotten_when_their_limit_is_whole_again() -> None:
    box = Outbox(count=3, per_s=600)
    box.post(letter())
    sent(box, 0)
    box.tidy(599)
    assert box._lines
    box.tidy(600)
    assert not box._lines


def test_a_flood_of_one_namespace_drops_its_own_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took all the room: whatever came of others afterwards was dropped."""
    monkeypatch.setattr(module, "MOST_WAITING", 6)
    box = Outbox()
    for number in range(20):
        box.post(letter(number, f"{number}@example.org", namespace="flood"))
    assert len(box) == 6
    others = [letter(number, "bob@example.org", namespace="quiet") for number in range(3)]
    assert [box.post(one) for one in others] == [False] * 3
    assert len(box) == 6, "memory is bounded all the same"
    assert box.counts["mail", "dropped"] == 17
    assert box.post(letter(3, "bob@example.org", namespace="quiet")), "now both have half"
    assert sum(sent(box, 0)) == 6


def test_namespaces_take_turns_in_a_line() -> None:
    """A storm of one tenant pushed all others into the part of a summary that is not listed."""
    box = Outbox(count=2, per_s=600)
    for number in range(50):
        box.post(letter(number, namespace="flood"))
    box.post(letter(0, namespace="quiet"))
    (first,) = taken(box, 0)
    box.delivered(first, 0)
    (summary,) = taken(box, 0)
    assert [one.namespace for one in summary.letters[:2]] == ["quiet", "flood"]
    box.failed(summary, 0)
    (again,) = taken(box, 15)
    assert again.letters == summary.letters
