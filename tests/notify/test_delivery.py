"""Messages over a real SMTP server and a real HTTP receiver, both on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.notify.test_messages import JOB, notice
from tests.notify.worlds import section
from unisono.apiserver.access.certify import certificates
from unisono.kinds.overriding import override
from unisono.kinds.policy.notifications import Notifications, SecretKey
from unisono.kube.errors import Unreachable
from unisono.kube.form import Json, Key
from unisono.notify import delivery, network
from unisono.notify.delivery import Sender
from unisono.notify.network import post_document, send_mail
from unisono.notify.outbox import Letter, Login, NotSent, Outbox
from unisono.notify.recipients import Hook, Mailbox, Target
from unisono.runtime.clock import RealClock

ADA = Mailbox("ada@example.org")


# ---- servers -------------------------------------------------------------------------------------


class Mailroom:
    """What a mail server got."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.mails: list[Message] = []
        self.logins: list[str] = []

    async def handle_RCPT(  # noqa: N802 (the server's name for it)
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"

    def login(
        self, server: SMTP, session: Session, envelope: Envelope, way: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(f"{data.login.decode()}:{data.password.decode()}")
        return AuthResult(success=data.password == b"secret", handled=False)


@contextmanager
def mail_server(mailroom: Mailroom, **more: Any) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Controller(mailroom, hostname="127.0.0.1", port=port, **more)
    server.start()
    try:
        yield port
    finally:
        server.stop()


class Hooks(ThreadingHTTPServer):
    """What a receiver of webhooks got; `codes` are its next answers."""

    daemon_threads = True

    def __init__(self, *codes: int) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.codes = list(codes)
        self.got: list[tuple[str, Json]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Hook(BaseHTTPRequestHandler):
    server: Hooks

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        code = self.server.codes.pop(0) if self.server.codes else 204
        self.send_response(code)
        if code in (301, 302, 307):
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.got.append((self.path, {}))
        self.send_response(204)
        self.end_headers()

    @override
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def receiver(*codes: int, secure: ssl.SSLContext | None = None) -> Iterator[Hooks]:
    server = Hooks(*codes)
    if secure is not None:
        server.socket = secure.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# ---- the sender ----------------------------------------------------------------------------------


class Sent:
    """A sender at work on some letters."""

    def __init__(self, made: Notifications, secrets: Mapping[str, Mapping[str, str]]) -> None:
        self.outbox = Outbox()
        self.complaints: list[str] = []
        self.settled: list[tuple[str, Key]] = []

        async def read(name: str) -> Mapping[str, str]:
            if name not in secrets:
                raise Unreachable(f"no Secret {name}", sent=False)
            return secrets[name]

        self.sender = Sender(
            self.outbox, lambda: made, read, clock=RealClock(), complain=self.complaints.append
        )
        self.sender.settled = lambda controller, key: self.settled.append((controller, key))

    def until(self, is_done: Callable[[], bool], *letters: Letter) -> None:
        async def run() -> None:
            async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
                working = tasks.create_task(self.sender.run())
                for letter in letters:
                    self.outbox.post(letter)
                self.sender.awake()
                while not is_done():
                    await asyncio.sleep(0.005)
                working.cancel()

        asyncio.run(run())


def mailing(port: int, **more: Any) -> Notifications:
    server = {"server": "127.0.0.1", "port": port, "from": "unisono@example.org", "tls": "none"}
    return section(mail={**server, **more})


def deliver(
    made: Notifications,
    target: Target,
    *,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    result: str = "sent",
) -> Sent:
    """Send one letter and wait for what becomes of it."""
    sent = Sent(made, secrets or {})
    is_done = lambda: sent.outbox.counts[target.channel, result] == 1
    sent.until(is_done, Letter(target, notice()))
    return sent


def test_a_mail_arrives_and_its_workload_is_woken() -> None:
    mailroom = Mailroom()
    with mail_server(mailroom) as port:
        sent = deliver(mailing(port), ADA)
    (found,) = mailroom.mails
    assert found["Subject"] == "Job team-a/train has ended"
    assert found["To"] == "ada@example.org"
    assert sent.settled == [("notifications", Key(JOB.namespace, JOB.workload))]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ssl.SSLContext]:
    """Return an authority of our own, and the context of a server that it vouches for."""
    folder: Path = tmp_path_factory.mktemp("tls")
    made = asyncio.run(certificates(folder, now=RealClock().now(), hosts=("127.0.0.1",)))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.chain, made.key)
    return made.authority.read_text(), context


def test_starttls_and_a_login_from_a_secret(authority: tuple[str, ssl.SSLContext]) -> None:
    pem, context = authority
    mailroom = Mailroom()
    ways: Json = {"tls_context": context, "require_starttls": True, "auth_require_tls": True}
    with mail_server(mailroom, **ways, authenticator=mailroom.login) as port:
        made = mailing(port, tls="starttls", secret="mail")
        login = {"username": "unisono", "password": "secret", "ca.crt": pem}
        deliver(made, ADA, secrets={"mail": login})
        assert mailroom.logins == ["unisono:secret"]
        assert len(mailroom.mails) == 1
        # Without the authority the server is not trusted, and the password is not sent.
        assert made.mail is not None
        with pytest.raises(NotSent, match="no trusted connection") as error:
            send_mail(made.mail, Login("unisono", "secret"), _mail())
        assert not error.value.is_final
        with pytest.raises(NotSent, match="does not accept the login") as error:
            send_mail(made.mail, Login("unisono", "wrong", pem), _mail())
        assert not error.value.is_final
    assert {*mailroom.logins} == {"unisono:secret", "unisono:wrong"}


def _mail() -> Any:
    from unisono.notify.messages import mail

    return mail([notice()], sender="a@example.org", to="ada@example.org", now=0)


@pytest.mark.parametrize(
    ("answer", "is_final"),
    [("550 No such user here", True), ("450 Try again later", False)],
)
def test_a_refusal_is_final_or_not_as_the_server_says(answer: str, is_final: bool) -> None:
    with mail_server(Mailroom(answer)) as port:
        made = mailing(port).mail
        assert made is not None
        with pytest.raises(NotSent, match=answer) as error:
            send_mail(made, Login(), _mail())
    assert error.value.is_final == is_final


def test_a_mail_that_is_refused_for_good_is_given_up_with_a_line_in_the_log() -> None:
    with mail_server(Mailroom("550 No such user here")) as port:
        sent = deliver(mailing(port), ADA, result="failed")
    assert sent.complaints == [
        "mail to ada@example.org: gave up 1 of its messages: "
        "the server refuses it: 550 No such user here"
    ]
    assert sent.settled


def test_a_server_that_is_away_is_tried_again() -> None:
    with mail_server(Mailroom()) as port:
        pass  # now the port is free
    sent = Sent(mailing(port), {})
    waits = lambda: (sent.outbox.next_due(RealClock().now()) or 0) > RealClock().now() + 10
    sent.until(waits, Letter(ADA, notice()))
    assert len(sent.outbox) == 1
    assert sent.complaints == []


@pytest.mark.parametrize("form", ["generic", "slack", "teams"])
def test_webhooks_get_their_form(form: Any) -> None:
    with receiver() as hooks:
        deliver(section(), Hook(0, form, f"{hooks.url}/x?y=1"))
    ((path, document),) = hooks.got
    assert path == "/x?y=1"
    kind = {"generic": "kind", "slack": "text", "teams": "attachments"}[form]
    assert kind in document


def test_the_address_of_a_webhook_may_be_in_a_secret_and_is_never_logged() -> None:
    with receiver(404) as hooks:
        secrets = {"unisono-notifications": {"slack": f"{hooks.url}/services/T0KEN"}}
        hook = Hook(0, "slack", url_from=SecretKey(key="slack"))
        sent = deliver(section(), hook, secrets=secrets, result="failed")
    assert hooks.got[0][0] == "/services/T0KEN"
    (line,) = sent.complaints
    assert line == "webhook of notifications.rules[0]: gave up 1 of its messages: it answers 404"


def test_an_authority_of_our_own_vouches_for_a_webhook(
    authority: tuple[str, ssl.SSLContext],
) -> None:
    pem, context = authority
    with receiver(secure=context) as hooks:
        url = hooks.url.replace("http:", "https:")
        with pytest.raises(NotSent, match="cannot be reached"):
            post_document(url, {})
        hook = Hook(0, "slack", url_from=SecretKey(key="slack"))
        deliver(section(), hook, secrets={"unisono-notifications": {"slack": url, "ca.crt": pem}})
    assert len(hooks.got) == 1


def test_a_secret_that_is_missing_is_waited_for() -> None:
    sent = Sent(section(), {})
    hook = Hook(0, "slack", url_from=SecretKey(key="slack"))
    waits = lambda: (sent.outbox.next_due(RealClock().now()) or 0) > RealClock().now() + 10
    sent.until(waits, Letter(hook, notice()))
    assert len(sent.outbox) == 1


@pytest.mark.parametrize(
    ("code", "is_final"), [(302, True), (307, True), (400, True), (429, False), (503, False)]
)
def test_redirects_are_not_followed_and_a_busy_receiver_is_asked_again(
    code: int, is_final: bool
) -> None:
    with receiver(code) as hooks:
        with pytest.raises(NotSent, match=str(code)) as error:
            post_document(f"{hooks.url}/x", {})
        assert [path for path, _ in hooks.got] == ["/x"]
    assert error.value.is_final == is_final


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x", "", "http://"])
def test_only_web_addresses_are_called(url: str) -> None:
    with pytest.raises(NotSent, match="http://"):
        post_document(url, {})


def test_secrets_are_read_as_they_are_at_that_moment() -> None:
    from unisono.notify.delivery import secrets_of

    class Api:
        value = "one"

        async def get(self, kind: Any, name: str, namespace: str, *, once: bool) -> Json:
            assert (kind.kind, name, namespace) == ("Secret", "s", "home")
            return {"data": {"key": base64.b64encode(self.value.encode()).decode(), "bad": "!"}}

    api = Api()
    read = secrets_of(api, "home")  # type: ignore[arg-type]  # all that it asks of a client
    assert asyncio.run(read("s")) == {"key": "one", "bad": ""}  # type: ignore[arg-type]  # a coroutine
    api.value = "two\n"
    assert asyncio.run(read("s"))["key"] == "two"  # type: ignore[arg-type]


def test_a_receiver_without_an_end_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers a byte at a time: no step of the connection ever takes too long."""
    monkeypatch.setattr(delivery, "_LONGEST_CALL_SECONDS", 0.2)
    monkeypatch.setattr(delivery, "_MOST_CALLS", 1)
    is_over = threading.Event()

    def post(url: str, document: Json, authority: str = "") -> None:
        if "slow" in url:
            is_over.wait(10)

    monkeypatch.setattr(network, "post_document", post)
    slow, quick = Hook(0, "generic", "http://slow/"), Hook(1, "generic", "http://quick/")
    sent = Sent(section(), {})
    try:
        sent.until(
            lambda: sent.outbox.counts["webhook", "sent"] == 1,
            Letter(slow, notice()),
            Letter(quick, notice()),
        )
        assert len(sent.outbox) == 1, "it is tried again later"
    finally:
        is_over.set()
