"""Empties the outbox: reads the Secrets that a message needs, sends it, and says what became of it.

Only the leader runs a sender. A message that was sent while the lease was lost may be sent again by
the next leader, which cannot know of it; its id is the same.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from unisono.control import names
from unisono.kinds.policy.notifications import Notifications
from unisono.kube.client import Client
from unisono.kube.clock import Clock, within
from unisono.kube.errors import KubeError
from unisono.kube.form import Key
from unisono.notify.controller import ARRAYS, NAME
from unisono.notify.messages import document, mail
from unisono.notify.outbox import CHANNELS, Delivery, Login, NotSent, Outbox
from unisono.notify.recipients import Hook, Mailbox

# So many mails, and so many calls of webhooks, are on their way at once; each has a thread. A mail
# server that hangs holds up no webhook.
_MOST_CALLS = 4
# Each step of a connection has a timeout; a receiver that sends a byte at each would hold it open
# for days. Its thread is left to itself then, and it is not called again while that goes on.
_LONGEST_CALL_SECONDS = 90.0
# Without anything to send: how often lines of recipients are forgotten.
_TIDY_SECONDS = 600.0

# The contents of a Secret by its name; raises KubeError.
ReadSecret = Callable[[str], Awaitable[Mapping[str, str]]]


def secrets_of(client: Client, namespace: str) -> ReadSecret:
    """Return what reads the Secrets of a namespace, as they are at that moment."""

    async def read(name: str) -> Mapping[str, str]:
        found = await client.get(names.SECRET, name, namespace, once=True)
        return {key: _decoded(value) for key, value in (found.get("data") or {}).items()}

    return read


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(str(value)).decode().strip()
    except (binascii.Error, ValueError):
        return ""


class Sender:
    """Sends what is due until it is cancelled."""

    def __init__(
        self,
        outbox: Outbox,
        section: Callable[[], Notifications | None],
        read_secret: ReadSecret,
        *,
        clock: Clock,
        complain: Callable[[str], None],
    ) -> None:
        """Take the outbox, and what says how mail is sent now.

        `complain` is called with a line for the log when messages are given up.
        """
        self._outbox = outbox
        self._section = section
        self._read_secret = read_secret
        self._clock = clock
        # Called with a controller and a key once a message of theirs is sent or given up.
        self.settled: Callable[[str, Key], None] = lambda controller, key: None
        self._complain = complain
        self._news = asyncio.Event()
        self._calls = {one: asyncio.Semaphore(_MOST_CALLS) for one in CHANNELS}
        self._hanging: Counter[str] = Counter()  # calls that were given up and go on, by receiver

    def awake(self) -> None:
        """Note that the outbox has something new."""
        self._news.set()

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                now = self._clock.now()
                for delivery in self._outbox.take(now):
                    tasks.create_task(self._deliver(delivery))
                await self._wait(now)

    async def _wait(self, now: float) -> None:
        due = self._outbox.next_due(now)
        if due is None:
            self._outbox.tidy(now)
        pause = _TIDY_SECONDS if due is None else max(due - now, 0.05)
        with contextlib.suppress(TimeoutError):
            await within(self._clock, pause, self._news.wait())
        self._news.clear()

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._send(delivery)
        except NotSent as error:
            why, is_final = str(error), error.is_final
        except KubeError as error:
            why, is_final = f"its Secret cannot be read: {error}", False
        else:
            self._outbox.delivered(delivery, self._clock.now())
            self._say_settled(delivery)
            return
        if self._outbox.failed(delivery, self._clock.now(), is_final=is_final):
            many = len(delivery.letters)
            self._complain(f"{delivery.target.key}: gave up {many} of its messages: {why}")
            self._say_settled(delivery)
        self.awake()

    def _say_settled(self, delivery: Delivery) -> None:
        for subject in {one.subject for one in delivery.notices}:
            controller = ARRAYS if subject.is_array else NAME
            self.settled(controller, Key(subject.namespace, subject.workload))
        self.awake()  # the next of its line may go

    async def _send(self, delivery: Delivery) -> None:
        notices = delivery.notices
        match delivery.target:
            case Mailbox(address):
                section = self._section()
                server = section.mail if section is not None else None
                if server is None:
                    raise NotSent("the policy names no mail server any more", is_final=True)
                found = await self._read_secret(server.secret) if server.secret else {}
                login = Login(
                    found.get("username", ""), found.get("password", ""), found.get("ca.crt", "")
                )
                # Imported here, as below: SMTP and HTTP weigh some megabytes, and most clusters
                # send nothing.
                from unisono.notify.network import send_mail

                text = mail(notices, sender=server.sender, to=address, now=self._clock.now())
                await self._called("mail", server.server, lambda: send_mail(server, login, text))
            case Hook(form=form, url=url, url_from=url_from):
                authority = ""
                if url_from is not None:
                    found = await self._read_secret(url_from.name)
                    url, authority = found.get(url_from.key, ""), found.get("ca.crt", "")
                    if not url:
                        raise NotSent(f"Secret {url_from.name} has no key {url_from.key}")
                from unisono.notify.network import post_document

                made = document(form, notices)
                address = url
                await self._called(
                    "webhook",
                    delivery.target.key,
                    lambda: post_document(address, made, authority),
                )

    async def _called(self, channel: str, receiver: str, call: Callable[[], None]) -> None:
        """Carry a call out in a thread that a process does not wait for when it ends.

        A pool of threads would: a mail server that hangs would keep `unisono up` for a while.
        """
        async with self._calls[channel]:
            if self._hanging[receiver] >= _MOST_CALLS:
                raise NotSent("earlier calls of it still have no end")
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[NotSent | None] = loop.create_future()
            outcome: NotSent | None = NotSent("it failed by a bug; its trace is in the log")

            def run() -> None:
                nonlocal outcome
                try:
                    call()
                    outcome = None
                except NotSent as error:
                    outcome = error
                finally:
                    # The loop may be closed by now, and what waited for it gone.
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(settle)

            def settle() -> None:
                if ended.done():  # it was given up
                    self._hanging[receiver] -= 1
                else:
                    ended.set_result(outcome)

            async def end() -> NotSent | None:
                return await ended

            threading.Thread(target=run, name="notify", daemon=True).start()
            try:
                error = await within(self._clock, _LONGEST_CALL_SECONDS, end())
            except TimeoutError:
                self._hanging[receiver] += ended.cancelled()
                raise NotSent(f"it did not end within {_LONGEST_CALL_SECONDS:.0f} s") from None
        if error is not None:
            raise error
