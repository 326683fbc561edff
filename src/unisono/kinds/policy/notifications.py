"""Notifications as an operator writes them in a Policy: how they are sent, and by which rules.

    notifications:
      mail:
        server: mail.example.org
        port: 587
        from: unisono@example.org
        tls: starttls                      # or implicit, or none
        secret: unisono-notifications      # keys username, password; ca.crt for an own authority
        domain: example.org                # of users that name no address
        recipients: [example.org]          # addresses and domains that jobs may name
      rules:
        - events: [fail, preempt]
          match: {namespaces: [team-a]}    # and users, queues; without it, all workloads
          mail: [oncall@example.org]
        - events: [all]
          webhook: {form: slack, urlFrom: {key: slack}}
      limit: {count: 30, per: 1h}          # messages to one recipient

Secrets are those of the installation's namespace (`kube-system` in an embedded cluster).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from unisono.kinds.decode import Schema
from unisono.kinds.meta import wrong_with_subdomain
from unisono.kinds.notes import Notes
from unisono.kinds.notifying import (
    MOST_ADDRESSES,
    NOTIFY_TO,
    is_address,
    is_domain,
    is_user_name,
    words_of,
)
from unisono.kinds.scalar import Duration

# The one Secret that the roles of an installation let the controllers read.
SECRET = "unisono-notifications"
_MOST_RULES = 100
_PORTS = {"starttls": 587, "implicit": 465, "none": 25}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?|::1")
_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?#]\S*)?")

Form = Literal["generic", "slack", "teams"]
# The words of a rule. Jobs may also say none and array-tasks.
EventWord = Literal[
    "all",
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


class SecretKey(Schema, frozen=True, kw_only=True):
    """One key of a Secret in the namespace of the installation."""

    name: Annotated[str, Meta(min_length=1)] = SECRET
    key: Annotated[str, Meta(min_length=1)]


class Mail(Schema, frozen=True, kw_only=True):
    """The mail server, and to which addresses jobs may have mail sent."""

    server: Annotated[str, Meta(description="The mail server's name or address.")]
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None,
        Meta(description="By default 587 with starttls, 465 with implicit, 25 with none."),
    ] = None
    sender: Annotated[str, Meta(description="The address that mails come from.")] = msgspec.field(
        name="from"
    )
    tls: Annotated[
        Literal["starttls", "implicit", "none"],
        Meta(description="Encrypt after a greeting, from the first byte, or not at all."),
    ] = "starttls"
    secret: Annotated[
        str,
        Meta(description="A Secret with username and password; ca.crt if the authority is yours."),
    ] = ""
    domain: Annotated[
        str, Meta(description="Users that name no address get mail at this domain.")
    ] = ""
    recipients: Annotated[
        tuple[str, ...],
        Meta(max_length=1000, description="Addresses and domains that jobs may name."),
    ] = ()

    @property
    def used_port(self) -> int:
        """The port of the server."""
        return self.port if self.port is not None else _PORTS[self.tls]

    def address_of(self, named: str) -> str:
        """Return the address that a job means; empty if it is none."""
        if is_address(named):
            return named
        return f"{named}@{self.domain}" if self.domain and is_user_name(named) else ""

    def allows(self, address: str) -> bool:
        """Say whether jobs may have mail sent to an address."""
        domain = address.rpartition("@")[2].lower()
        allowed = {one.lower() for one in (*self.recipients, self.domain) if one}
        return domain in allowed or address.lower() in allowed


class Match(Schema, frozen=True, kw_only=True):
    """The workloads that a rule is about: of one of each list that is not empty."""

    users: tuple[str, ...] = ()
    queues: Annotated[
        tuple[str, ...],
        Meta(description="LocalQueues: a name in any namespace, or namespace/name."),
    ] = ()
    namespaces: tuple[str, ...] = ()

    def takes(self, *, user: str, queue: str, namespace: str) -> bool:
        """Say whether a workload is among them."""
        return (
            (not self.users or user in self.users)
            and (not self.queues or queue in self.queues or f"{namespace}/{queue}" in self.queues)
            and (not self.namespaces or namespace in self.namespaces)
        )


class Webhook(Schema, frozen=True, kw_only=True):
    """An address that is called with a JSON document."""

    url: Annotated[str, Meta(description="Where to; a secret address belongs into urlFrom.")] = ""
    url_from: Annotated[
        SecretKey | None, Meta(description="The Secret that holds the address.")
    ] = None
    form: Annotated[
        Form, Meta(description="What is sent: our own document, or what Slack or Teams read.")
    ] = "generic"


class Rule(Schema, frozen=True, kw_only=True):
    """Which recipients are told of which events of which workloads."""

    match: Match = Match()
    events: Annotated[tuple[EventWord, ...], Meta(min_length=1)]
    mail: Annotated[tuple[str, ...], Meta(max_length=MOST_ADDRESSES)] = ()
    webhook: Webhook | None = None


class Limit(Schema, frozen=True, kw_only=True):
    """How many messages one recipient gets; what is more comes as one summary."""

    count: Annotated[int, Meta(ge=1, le=10_000)] = 30
    per: Duration = Duration.from_raw("1h")


class Notifications(Schema, frozen=True, kw_only=True):
    """What people are told without having asked."""

    mail: Mail | None = None
    rules: Annotated[tuple[Rule, ...], Meta(max_length=_MOST_RULES)] = ()
    limit: Limit = Limit()


def check_notifications(section: Notifications, notes: Notes) -> None:
    """Say what is wrong with the section."""
    path = "notifications"
    if section.mail is not None:
        _check_mail(section.mail, f"{path}.mail", notes)
    for index, rule in enumerate(section.rules):
        _check_rule(rule, f"{path}.rules[{index}]", notes, has_server=section.mail is not None)
    if section.limit.per.ms <= 0:
        notes.problem(f"{path}.limit.per", "must be more than 0")


def _check_mail(mail: Mail, path: str, notes: Notes) -> None:
    if _HOST.fullmatch(mail.server) is None:
        notes.problem(f"{path}.server", f'"{mail.server}" is no name of a server')
    if not is_address(mail.sender):
        notes.problem(f"{path}.from", f'"{mail.sender}" is no mail address')
    if mail.domain and not is_domain(mail.domain):
        notes.problem(f"{path}.domain", f'"{mail.domain}" is no domain')
    for index, one in enumerate(mail.recipients):
        if not is_address(one) and not is_domain(one):
            message = f'"{one}" is neither a mail address nor a domain'
            notes.problem(f"{path}.recipients[{index}]", message)
    if mail.secret and (wrong := wrong_with_subdomain(mail.secret)):
        notes.problem(f"{path}.secret", wrong)
    if mail.secret and mail.tls == "none" and mail.server not in _LOOPBACK:
        notes.problem(f"{path}.tls", "is none: the password would cross the network in clear text")


def _check_rule(rule: Rule, path: str, notes: Notes, *, has_server: bool) -> None:
    if not rule.mail and rule.webhook is None:
        notes.problem(path, "tells no recipient; name addresses under mail, or a webhook")
    if rule.mail and not has_server:
        notes.problem(f"{path}.mail", "needs notifications.mail with a server")
    for index, one in enumerate(rule.mail):
        if not is_address(one):
            notes.problem(f"{path}.mail[{index}]", f'"{one}" is no mail address')
    hook = rule.webhook
    if hook is None:
        return
    if bool(hook.url) == (hook.url_from is not None):
        notes.problem(f"{path}.webhook", "needs either url or urlFrom")
    if hook.url and not is_web_address(hook.url):
        notes.problem(f"{path}.webhook.url", "must begin with http:// or https:// and a host")
    if hook.url_from is not None and (wrong := wrong_with_subdomain(hook.url_from.name)):
        notes.problem(f"{path}.webhook.urlFrom.name", wrong)


def is_web_address(text: str) -> bool:
    """Say whether a text is an address that a webhook can have.

    >>> is_web_address("https://hooks.example.org/x"), is_web_address("file:///etc/passwd")
    (True, False)
    """
    return _URL.fullmatch(text) is not None


def addresses_of(
    section: Notifications | None, annotations: Mapping[str, str], user: str
) -> tuple[list[str], list[str]]:
    """Return the addresses that a job may have told, and why it has no others."""
    named = words_of(str(annotations.get(NOTIFY_TO) or ""))[:MOST_ADDRESSES]
    mail = section.mail if section is not None else None
    if mail is None:
        return [], ["the policy names no mail server (notifications.mail)"]
    if not named and not user:
        return [], [f"it names no address ({NOTIFY_TO}), and no user"]
    found: list[str] = []
    wrong: list[str] = []
    for one in named or [user]:
        address = mail.address_of(one)
        if not address:
            wrong.append(f"{one} is no mail address, and the policy has no domain for users")
        elif not mail.allows(address):
            message = "is not among the addresses that jobs may name"
            wrong.append(f"{address} {message} (notifications.mail.recipients)")
        elif address not in found:
            found.append(address)
    return found, wrong
