"""The webhooks' certificate: what a Secret holds of it, and when it is due for another.

An authority is made for each certificate and its key forgotten at once: a reader of the Secret
can play the webhook until its certificate ends, and can never make another. A new certificate is
trusted together with the one before it, so that replicas which still show the old one are believed.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from unisono.apiserver.access.tls import fresh_certificate, life_left, same_names

Json = dict[str, Any]
# Renewed when less than a third of its year is left: months to notice that it does not work.
_RENEW_SHARE = 1 / 3


class Proof(NamedTuple):
    """A certificate with its key, and the authorities to be trusted: its own first."""

    certificate: bytes
    key: bytes
    trusted: bytes


def read(secret: Json) -> Proof | None:
    """Return what a Secret holds; None if it is empty, or not whole."""
    data = secret.get("data") or {}
    try:
        found = Proof(*(base64.b64decode(data[name], validate=True) for name in _NAMES))
    except (KeyError, ValueError):
        return None
    return found


_NAMES = ("tls.crt", "tls.key", "ca.crt")


def written(proof: Proof) -> dict[str, str]:
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
