"""What was refused lately, kept in a ConfigMap so that a restart does not forget it.

kube-system/unisono-stock (on a real cluster: in the namespace of the installation)
data: {"on-demand:p5.48xlarge:us-east-1a": '{"count":8,"failures":2,…}'}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from unisono.control import names
from unisono.control.actions import Create, Json, Patch, Ref, Steps
from unisono.control.view import View
from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import CapacityType
from unisono.engine.provisioning.catalogue import Refused, after_refusal, is_over
from unisono.provision import keys

Offered = tuple[str, str, CapacityType]  # type, zone, how it is sold
_FORGET_MS = 3600_000  # so long after its pause a refusal no longer makes the next one longer


def refusals(view: View, home: str = keys.SYSTEM) -> Iterator[Refused]:
    """Yield what is remembered in a namespace."""
    stored = view.get(names.CONFIG_MAP, keys.STOCK, home)
    for text in ((stored or {}).get("data") or {}).values():
        try:
            yield msgspec.json.decode(text, type=Refused)
        except msgspec.DecodeError:  # edited by hand; nothing depends on it for long
            continue


def key_of(offer: Offered) -> str:
    """Return under which key an offer is remembered.

    >>> key_of(("p5.48xlarge", "us-east-1a", "on-demand"))
    'on-demand.p5.48xlarge.us-east-1a'
    """
    machine, zone, sold = offer
    return f"{sold}.{machine}.{zone}"


def remember(view: View, home: str, counts: dict[Offered, int], now: float, code: str) -> Steps:
    """Write down that so many of these were refused."""
    instant = Instant(int(now * 1000))
    known = {
        key_of((one.machine, one.zone, one.capacity_type)): one for one in refusals(view, home)
    }
    data: dict[str, str | None] = {
        key: None for key, one in known.items() if is_over(one, Instant(instant - _FORGET_MS))
    }
    for offer, count in counts.items():
        key = key_of(offer)
        before = known.get(key) if key not in data else None
        data[key] = _text(after_refusal(before, offer, count, instant, code))
    yield from _write(view, home, data)


def forget(view: View, home: str, offers: Iterable[Offered]) -> Steps:
    """Forget refusals of what was granted."""
    stored = view.get(names.CONFIG_MAP, keys.STOCK, home)
    known = (stored or {}).get("data") or {}
    gone: dict[str, str | None] = {
        key: None for key in dict.fromkeys(map(key_of, offers)) if key in known
    }
    if gone:
        yield from _write(view, home, gone)


def _text(refused: Refused) -> str:
    return msgspec.json.encode(refused).decode()


def _write(view: View, home: str, data: dict[str, str | None]) -> Steps:
    stored = view.get(names.CONFIG_MAP, keys.STOCK, home)
    if stored is not None:
        yield Patch(Ref.to(stored), {"data": data})
        return
    made: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": keys.STOCK, "namespace": home},
        "data": {key: text for key, text in data.items() if text is not None},
    }
    yield Create(made)
