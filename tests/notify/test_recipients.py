"""The recipients of a workload's events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notify.worlds import MAIL, section
from unisono.kinds.decode import decode
from unisono.kinds.notes import Notes
from unisono.kinds.policy.notifications import Notifications, check_notifications
from unisono.notify.recipients import Hook, Mailbox, recipients_of
from unisono.notify.subject import Subject

TRAIN = Subject(
    uid="u", workload="w", namespace="team-a", kind="Job", name="train", queue="main", user="ada"
)


def told(rules: list[Any], subject: Subject = TRAIN, **said: str) -> dict[str, set[str]]:
    annotations = {f"unisono.dev/{key.replace('_', '-')}": text for key, text in said.items()}
    found = recipients_of(section(mail=MAIL, rules=rules), annotations, subject)
    return {target.key: set(events) for target, events in found.events.items()}


@pytest.mark.parametrize(
    ("match", "takes"),
    [
        ({}, True),
        ({"users": ["ada"]}, True),
        ({"users": ["eve"]}, False),
        ({"queues": ["main"]}, True),
        ({"queues": ["team-a/main"]}, True),
        ({"queues": ["team-b/main"]}, False),
        ({"namespaces": ["team-a", "team-b"]}, True),
        ({"namespaces": ["team-b"]}, False),
        ({"users": ["ada"], "namespaces": ["team-b"]}, False),
    ],
)
def test_a_rule_is_about_users_queues_and_namespaces(match: Any, takes: bool) -> None:
    rule = {"match": match, "events": ["fail"], "mail": ["ops@example.org"]}
    assert bool(told([rule])) == takes


def test_users_that_ask_for_ends_are_told_of_failures() -> None:
    rule = {"events": ["end"], "webhook": {"url": "https://example.org/x"}}
    assert told([rule]) == {"webhook of notifications.rules[0]": {"end", "fail"}}


def test_an_address_of_a_rule_and_of_the_job_is_one_recipient() -> None:
    rule = {"events": ["fail"], "mail": ["ada@example.org"]}
    assert told([rule], notify="begin") == {"mail to ada@example.org": {"begin", "fail"}}


def test_without_an_address_the_user_is_told() -> None:
    assert told([], notify="begin") == {"mail to ada@example.org": {"begin"}}
    assert told([], notify="begin", notify_to="bob, boss@other.org") == {
        "mail to bob@example.org": {"begin"},
        "mail to boss@other.org": {"begin"},
    }
    assert told([], notify="none", notify_to="bob") == {}


@pytest.mark.parametrize(
    "address", ["eve@other.org", "a@b\nBcc: c@d", "x@example.org.evil.org", "@example.org", "<a@b>"]
)
def test_other_addresses_are_refused(address: str) -> None:
    annotations = {"unisono.dev/notify": "all", "unisono.dev/notify-to": address}
    found = recipients_of(section(mail=MAIL), annotations, TRAIN)
    assert found.events == {}
    assert found.refused


def test_a_webhook_is_named_by_its_rule_as_its_address_may_be_a_secret() -> None:
    hook = Hook(3, "slack", "https://hooks.example.org/secret")
    assert "secret" not in hook.key
    assert Mailbox("a@b").key == "mail to a@b"


def problems(**fields: Any) -> list[str]:
    made, wrong = decode(Notifications, fields)
    notes = Notes(file="", document=0)
    if made is not None:
        check_notifications(made, notes)
    return [*(one.path for one in wrong), *(one.path for one in notes.problems)]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"rules": [{"events": ["fail"]}]}, "notifications.rules[0]"),
        ({"rules": [{"events": ["fail"], "mail": ["a@b"]}]}, "notifications.rules[0].mail"),
        ({"mail": {**MAIL, "from": "x"}}, "notifications.mail.from"),
        ({"mail": {**MAIL, "recipients": ["a b"]}}, "notifications.mail.recipients[0]"),
        ({"mail": {**MAIL, "tls": "none", "secret": "s"}}, "notifications.mail.tls"),
        (
            {"rules": [{"events": ["all"], "webhook": {"url": "file:///etc/passwd"}}]},
            "notifications.rules[0].webhook.url",
        ),
        ({"rules": [{"events": ["all"], "webhook": {}}]}, "notifications.rules[0].webhook"),
        ({"rules": [{"events": ["supper"], "mail": ["a@b"]}]}, "rules[0].events[0]"),
        ({"rules": [{"events": [], "mail": ["a@b"]}]}, "rules[0].events"),
        ({"limit": {"per": "0s"}}, "notifications.limit.per"),
        ({"limit": {"count": 0}}, "limit.count"),
    ],
)
def test_what_is_wrong_with_the_section_is_said_with_its_path(fields: Any, path: str) -> None:
    assert path in problems(**fields)
