"""The webhooks at work: a certificate that is trusted before it is shown, and a listener.

    read the Secret ──due?──▶ write a new one ──▶ have its authority trusted ──▶ show it
          ▲   (another replica was first: read)                                  │
          └───────────────────────────── a minute later ─────────────────────────┘

Every replica goes through these steps by itself and in this order; the first one writes, and all
others find it written. So it does not matter which one leads, or whether any does.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from unisono.apiserver.access.tls import fresh_certificate, life_left, same_names
from unisono.control.jobs.priority_class_rules import CLASS_RULES, read_rules
from unisono.control.names import CONFIG_MAP, SECRET
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded
from unisono.kube.errors import Conflict, KubeError, NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.kube.tls import show
from unisono.net.http.messages import Limits, Response
from unisono.net.http.pages import Handler, PageApplication, PageRequest, text
from unisono.net.http.server import serving
from unisono.net.listener import bound
from unisono.runtime.log import Journal
from unisono.runtime.webhook.configuration import KINDS, NAME, WEBHOOK, host_names
from unisono.runtime.webhook.rules import PATHS, TENANCY, answer

_LOOK_EVERY_S = 60.0
# At the start, and after trouble: until we can answer, jobs of queues are refused.
_SOON_S = 2.0
# The largest object that an API server takes is 3 MiB; a review may hold an old and a new one.
_LIMITS = Limits(body_bytes=8 * 1024 * 1024, idle_seconds=75.0)
_ANSWER_S = 30.0  # as long as an API server waits at most


class Webhook:
    """One replica's webhooks."""

    def __init__(self, client: Client, namespace: str, clock: Clock, journal: Journal) -> None:
        """Prepare; nothing is read or served yet."""
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._journal = journal
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._shown: Proof | None = None
        self.is_trusted = asyncio.Event()

    async def serve(self, host: str, port: int) -> None:
        """Answer API servers for as long as this runs, as soon as they can trust us."""
        await guarded(self._keep_trusted(), self._listen(host, port))

    async def _listen(self, host: str, port: int) -> None:
        await self.is_trusted.wait()
        async with _listening(host, port, self._context, self._review) as address:
            self._journal.info("answering reviews", address=address)
            await asyncio.Event().wait()

    async def _review(self, request: PageRequest) -> Response:
        if request.path not in PATHS:
            return text(404, f"there are {', '.join(PATHS)}\n")
        if request.method != "POST":
            return text(405, "only POST\n")
        try:
            review = json.loads(request.body)
            rules = await self.class_rules() if request.path == TENANCY else ()
            answered = answer(request.path, review, rules)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return text(400, f"not an AdmissionReview: {error!r}\n")
        except KubeError as error:  # rules that could not be read let nothing pass
            return text(503, f"the rules about classes: {error}\n")
        return Response(body=json.dumps(answered).encode())

    async def class_rules(self) -> Sequence[PriorityClassRule]:
        """Return the users of each priority class, as the leader has written them."""
        try:
            found = await self._client.get(CONFIG_MAP, CLASS_RULES, self._namespace)
        except NotFound:
            return ()
        return read_rules(found.get("data") or {})

    # ---- the certificate -------------------------------------------------------------------------

    async def _keep_trusted(self) -> None:
        while True:
            try:
                await self.step(self._clock.now())
            except Conflict:
                pause = _SOON_S  # another replica was first
            except KubeError as error:
                self._journal.warning("the certificate of the webhooks is stuck", reason=str(error))
                pause = _SOON_S if self._shown is None else _LOOK_EVERY_S
            else:
                pause = _LOOK_EVERY_S
            await self._clock.sleep(pause)

    async def step(self, now: float) -> None:
        """Have a certificate that is good, trusted and shown; nothing is written if it is."""
        hosts = host_names(self._namespace)
        secret = await self._client.get(SECRET, WEBHOOK, self._namespace)
        proof = proof_in(secret)
        if proof is None or is_due(proof, hosts, now):
            proof = renewed(proof, hosts, now)
            await self._client.update({**secret, "data": secret_data(proof)})
            self._journal.info("a new certificate for the webhooks")
        for kind in KINDS.values():
            await self._have_trusted(kind, proof)
        if proof != self._shown:
            show(self._context, proof.certificate, proof.key)
            self._shown = proof
            self.is_trusted.set()

    async def _have_trusted(self, kind: Kind, proof: Proof) -> None:
        try:
            found = await self._client.get(kind, NAME)
        except NotFound:
            return  # the server has policies for that
        trusted = base64.b64encode(proof.trusted).decode()
        webhooks: list[Json] = found["webhooks"]
        if any(one["clientConfig"].get("caBundle") != trusted for one in webhooks):
            for one in webhooks:
                one["clientConfig"]["caBundle"] = trusted
            await self._client.update(found)


# ---- the listener --------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _listening(
    host: str, port: int, context: ssl.SSLContext, review: Handler
) -> AsyncIterator[str]:
    sock = bound(host, port, "--webhook")
    application = PageApplication(review, _LIMITS, answer_seconds=_ANSWER_S)
    async with serving(application, sock, context):
        yield f"https://{host}:{sock.getsockname()[1]}"


# ---- what the Secret holds -----------------------------------------------------------------------
#
# The webhooks' certificate: what a Secret holds of it, and when it is due for another.
#
# An authority is made for each certificate and its key forgotten at once: a reader of the Secret
# can play the webhook until its certificate ends, and can never make another. A new certificate is
# trusted together with the one before it, so that replicas which still show the old one are
# believed.

# Renewed when less than a third of its year is left: months to notice that it does not work.
_RENEW_SHARE = 1 / 3


class Proof(NamedTuple):
    """A certificate with its key, and the authorities to be trusted: its own first."""

    certificate: bytes
    key: bytes
    trusted: bytes


def proof_in(secret: Json) -> Proof | None:
    """Return what a Secret holds; None if it is empty, or not whole."""
    data = secret.get("data") or {}
    try:
        found = Proof(*(base64.b64decode(data[name], validate=True) for name in _NAMES))
    except (KeyError, ValueError):
        return None
    return found


_NAMES = ("tls.crt", "tls.key", "ca.crt")


def secret_data(proof: Proof) -> dict[str, str]:
    """Return the data of a Secret."""
    packed = (base64.b64encode(one).decode() for one in proof)
    return dict(zip(_NAMES, packed, strict=True))


def is_due(proof: Proof | None, hosts: Sequence[str], now: float) -> bool:
    """Say whether it is time for another certificate."""
    if proof is None or not same_names(proof.certificate, hosts):
        return True
    return life_left(proof.certificate, datetime.fromtimestamp(now, UTC)) < _RENEW_SHARE


def renewed(before: Proof | None, hosts: Sequence[str], now: float) -> Proof:
    """Return a new one that is trusted together with the one before."""
    made = fresh_certificate(now=now, hosts=hosts)
    previous = b"" if before is None else _first(before.trusted)
    return Proof(made.certificate, made.key, made.authority + previous)


_END = b"-----END CERTIFICATE-----\n"


def _first(bundle: bytes) -> bytes:
    head, end, _ = bundle.partition(_END)
    return head + end
