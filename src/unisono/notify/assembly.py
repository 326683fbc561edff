"""The controllers and the sender, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unisono.control.controller import Controller
from unisono.kinds.policy.settings import Settings
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.notify.controller import ArrayNotifier, LivePolicy, Notifier, Teller
from unisono.notify.delivery import Sender, secrets_of
from unisono.notify.outbox import Outbox


@dataclass(frozen=True, slots=True)
class Notifications:
    """What finds events, and what sends messages."""

    controllers: Sequence[Controller]
    sender: Sender
    outbox: Outbox


def assembled(
    settings: Settings,
    client: Client,
    home: str,
    *,
    clock: Clock,
    complain: Callable[[str], None],
) -> Notifications:
    """Return all of it; Secrets are read in the namespace `home`.

    The sender's `settled` is to queue keys once there is a driver. `complain` logs that messages
    were given up.
    """
    outbox = Outbox()
    policy = LivePolicy(settings, outbox)
    sender = Sender(
        outbox,
        lambda: policy.section,
        secrets_of(client, home),
        clock=clock,
        complain=complain,
    )
    teller = Teller(policy, outbox, sender.awake)
    return Notifications((Notifier(teller), ArrayNotifier(teller)), sender, outbox)
