"""The recipients of a workload's events: those of the policy's rules, and those its job names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from unisono.kinds.notifying import NOTIFY, Event, events_of, expanded
from unisono.kinds.policy.notifications import (
    Form,
    Notifications,
    SecretKey,
    addresses_of,
)
from unisono.notify.subject import Subject


class Mailbox(msgspec.Struct, frozen=True):
    """An address that gets mail."""

    address: str

    @property
    def key(self) -> str:
        """What limits are counted by, and logs name."""
        return f"mail to {self.address}"

    @property
    def channel(self) -> str:
        """What metrics count by."""
        return "mail"


class Hook(msgspec.Struct, frozen=True):
    """An address that is called; it may be a secret, so only its rule is named anywhere."""

    rule: int  # its place among the rules of the policy, from 0
    form: Form
    url: str = ""
    url_from: SecretKey | None = None

    @property
    def key(self) -> str:
        """What limits are counted by, and logs name."""
        return f"webhook of notifications.rules[{self.rule}]"

    @property
    def channel(self) -> str:
        """What metrics count by."""
        return "webhook"


Target = Mailbox | Hook


class Recipients(msgspec.Struct, frozen=True):
    """Which targets are told of which events, and why some that the job names are not."""

    events: Mapping[Target, frozenset[Event]]
    refused: tuple[str, ...] = ()

    @property
    def wanted(self) -> frozenset[Event]:
        """All events of which any target is told."""
        return frozenset().union(*self.events.values())


def recipients_of(
    section: Notifications | None, annotations: Mapping[str, str], subject: Subject
) -> Recipients:
    """Return the targets for a workload's events.

    An address that both a rule and the job name gets one message. `end` alone tells of failures.
    """
    found: dict[Target, frozenset[Event]] = {}
    for index, rule in enumerate(section.rules if section is not None else ()):
        if not rule.match.takes(
            user=subject.user, queue=subject.queue, namespace=subject.namespace
        ):
            continue
        events = _with_failures(expanded(rule.events))
        targets: list[Target] = [Mailbox(one) for one in rule.mail]
        if rule.webhook is not None:
            hook = rule.webhook
            targets.append(Hook(index, hook.form, hook.url, hook.url_from))
        for target in targets:
            found[target] = found.get(target, frozenset()) | events
    refused: list[str] = []
    asked = _with_failures(events_of(annotations)) if NOTIFY in annotations else frozenset()
    if asked:
        addresses, refused = addresses_of(section, annotations, subject.user)
        for address in addresses:
            found[Mailbox(address)] = found.get(Mailbox(address), frozenset()) | asked
    return Recipients(found, tuple(refused))


def _with_failures(events: frozenset[Event]) -> frozenset[Event]:
    return events | {"fail"} if "end" in events else events
