"""A certificate under which API servers reach us: it is trusted before it is shown, and renewed.

    read the Secret ──due?──▶ write a new one ──▶ have its authority trusted ──▶ show it
          ▲   (another replica was first: read)                                  │
          └───────────────────────────── a minute later ─────────────────────────┘

Every replica goes through these steps by itself and in this order; the first one writes, and all
others find it written. So it does not matter which one leads, or whether any does.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from unisono.apiserver.access.tls import fresh_certificate, life_left, same_names
from unisono.control.names import SECRET
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.errors import Conflict, KubeError
from unisono.kube.form import Json
from unisono.kube.tls import show
from unisono.net.http.messages import Limits
from unisono.net.http.pages import Handler, PageApplication
from unisono.net.http.server import serving
from unisono.net.listener import bound
from unisono.runtime.log import Journal

_LOOK_EVERY_S = 60.0
# At the start, and after trouble: until we can answer, API servers refuse what they ask us about.
_SOON_S = 2.0
_ANSWER_S = 30.0  # as long as an API server waits at most


class ServingCertificate:
    """One replica's."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        clock: Clock,
        journal: Journal,
        *,
        secret: str,
        what: str,
        hosts: Sequence[str],
        have_trusted: Callable[[str], Awaitable[None]],
    ) -> None:
        """Prepare; nothing is read yet.

        The Secret is in the namespace; `what` is served with it, under the names `hosts`.
        `have_trusted` has API servers trust an authority, given in base64.
        """
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._journal = journal
        self._secret = secret
        self._what = what
        self._hosts = hosts
        self._have_trusted = have_trusted
        self._shown: Proof | None = None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.is_trusted = asyncio.Event()

    async def keep(self) -> None:
        """Go through the steps, over and over."""
        while True:
            try:
                await self.step(self._clock.now())
            except Conflict:
                pause = _SOON_S  # another replica was first
            except KubeError as error:
                text = f"the certificate of the {self._what} is stuck"
                self._journal.warning(text, reason=str(error))
                pause = _SOON_S if self._shown is None else _LOOK_EVERY_S
            else:
                pause = _LOOK_EVERY_S
            await self._clock.sleep(pause)

    async def step(self, now: float) -> None:
        """Have a certificate that is good, trusted and shown; nothing is written if it is."""
        secret = await self._client.get(SECRET, self._secret, self._namespace)
        proof = proof_in(secret)
        if proof is None or is_due(proof, self._hosts, now):
            proof = renewed(proof, self._hosts, now)
            await self._client.update({**secret, "data": secret_data(proof)})
            self._journal.info(f"a new certificate for the {self._what}")
        await self._have_trusted(base64.b64encode(proof.trusted).decode())
        if proof != self._shown:
            show(self.context, proof.certificate, proof.key)
            self._shown = proof
            self.is_trusted.set()

    async def serve(
        self, handler: Handler, limits: Limits, *, host: str, port: int, option: str
    ) -> None:
        """Answer API servers with it for as long as this runs, as soon as they can trust it.

        `option` chooses the address.
        """
        await self.is_trusted.wait()
        sock = bound(host, port, option)
        application = PageApplication(handler, limits, answer_seconds=_ANSWER_S)
        async with serving(application, sock, self.context):
            address = f"https://{host}:{sock.getsockname()[1]}"
            self._journal.info(f"answering for the {self._what}", address=address)
            await asyncio.Event().wait()


# ---- what the Secret holds -----------------------------------------------------------------------
#
# An authority is made for each certificate and its key forgotten at once: a reader of the Secret
# can play the server until its certificate ends, and can never make another. A new certificate is
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
