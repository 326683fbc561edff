"""An address for every pod, and the names that stand for it.

Addresses are in 127.64.0.0/10: all of it is this machine, so servers can bind there.

The address follows from the pod's uid; where two pods would share one, the later gets the next that
is free. Addresses are in the pods' statuses, so `learn` finds them again after a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

import msgspec

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import is_true
from unisono.control.view import View

NETWORK = IPv4Network("127.64.0.0/10")
_FIRST = int(NETWORK.network_address)
_SIZE = NETWORK.num_addresses
# The first and the last address of a network are never used.
_USABLE = _SIZE - 2


class Addresses:
    """The address of each pod."""

    def __init__(self) -> None:
        """Begin with all of them free."""
        self._owner: dict[str, str] = {}  # address → uid
        self._address: dict[str, str] = {}  # uid → address

    def learn(self, uid: str, address: str) -> None:
        """Record the address of a pod; if two claim one, the first keeps it."""
        if self._address.get(uid) == address:
            return
        self.release(uid)
        self._owner.setdefault(address, uid)
        self._address[uid] = address

    def of(self, uid: str) -> str:
        """Return the address of a pod; a new one if it has none."""
        address = self.expected(uid)
        self.learn(uid, address)
        return address

    def expected(self, uid: str) -> str:
        """Return the address of a pod, or the one that it would get now."""
        known = self._address.get(uid)
        if known is not None:
            return known
        digest = hashlib.blake2b(uid.encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big") % _USABLE
        while str(address := IPv4Address(_FIRST + 1 + number)) in self._owner:
            number = (number + 1) % _USABLE
        return str(address)

    def release(self, uid: str) -> None:
        """Take back the address of a pod that is gone."""
        address = self._address.pop(uid, None)
        if address is not None and self._owner.get(address) == uid:
            del self._owner[address]


# ---- names ---------------------------------------------------------------------------------------
#
# Names of pods and services, and the addresses they stand for (spec jobs §8).
#
#     hostname.subdomain.namespace.svc.cluster.local   a pod of a headless service; full name first,
#                                                      since programs advertise the first they find
#     service.namespace.svc.cluster.local              all pods of a headless service, one of others
#
# A pod that is not ready is hidden unless its service publishes such addresses.

_DOMAIN = "cluster.local"
_HEAD = "# Written by Unisono; changes are lost.\n127.0.0.1 localhost\n::1 localhost\n"


class Host(msgspec.Struct, frozen=True):
    """An address and its names, the full one first."""

    address: str
    names: tuple[str, ...]


def hostname_of(pod: Json) -> str:
    """Return the hostname of a pod."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def own_names(pod: Json) -> tuple[str, ...]:
    """Return the names of a pod: the full one first, its bare hostname last."""
    host = hostname_of(pod)
    return (*_pod_names(pod), host)


def neighbours(
    view: View, namespace: str, address_of: Callable[[Json], str], *, hides_unready: bool = True
) -> Iterator[Host]:
    """Yield the pods and services of a namespace that have names."""
    pods = [pod for pod in view.within(names.POD, namespace) if _is_living(pod)]
    services = view.within(names.SERVICE, namespace) if view.has(names.SERVICE) else []
    hiding = {
        service["metadata"]["name"]
        for service in services
        if hides_unready and not service["spec"].get("publishNotReadyAddresses")
    }
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        found = _pod_names(pod)
        if found and (pod["spec"].get("subdomain") not in hiding or _is_ready(pod)):
            yield Host(address_of(pod), found)
    for service in sorted(services, key=lambda one: str(one["metadata"]["name"])):
        yield from _service(service, pods, address_of, hides_unready=hides_unready)


def hosts_text(pod: Json, address: str, others: Sequence[Host]) -> str:
    """Return the hosts file of a pod: itself first, then the others by name."""
    own = own_names(pod)
    lines = [f"{address} {' '.join(own)}\n"]
    lines += [
        f"{host.address} {' '.join(host.names)}\n" for host in others if host.names[0] != own[0]
    ]
    return _HEAD + "".join(lines)


def name_table(pod: Json, address: str, others: Sequence[Host]) -> Mapping[str, str]:
    """Return names and addresses for texts: full and dotted names only, and the pod's own.

    A bare name of a service (`redis`) may be any word of a command, so it is left alone.
    """
    table = {name: host.address for host in reversed(others) for name in host.names if "." in name}
    table |= {name: address for name in own_names(pod) if "." in name}
    return table


def _pod_names(pod: Json) -> tuple[str, ...]:
    subdomain = pod["spec"].get("subdomain")
    if not subdomain:
        return ()
    short = f"{hostname_of(pod)}.{subdomain}"
    namespace = pod["metadata"].get("namespace", "")
    return (
        f"{short}.{namespace}.svc.{_DOMAIN}",
        f"{short}.{namespace}.svc",
        f"{short}.{namespace}",
        short,
    )


def _service(
    service: Json, pods: Sequence[Json], address_of: Callable[[Json], str], *, hides_unready: bool
) -> Iterator[Host]:
    spec, metadata = service["spec"], service["metadata"]
    selector = spec.get("selector")
    if not selector:
        return
    shows_all = bool(spec.get("publishNotReadyAddresses")) or not hides_unready
    backends = [
        pod
        for pod in pods
        if selector.items() <= (pod["metadata"].get("labels") or {}).items()
        and (shows_all or _is_ready(pod))
    ]
    backends.sort(key=lambda pod: str(pod["metadata"]["name"]))
    name, namespace = metadata["name"], metadata.get("namespace", "")
    full = f"{name}.{namespace}.svc.{_DOMAIN}"
    called = (full, f"{name}.{namespace}.svc", f"{name}.{namespace}", name)
    is_headless = spec.get("clusterIP") == "None"
    for pod in backends if is_headless else backends[:1]:
        yield Host(address_of(pod), called)


def _is_living(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _is_ready(pod: Json) -> bool:
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")
