"""Host names that a listener answers to: a defence against DNS rebinding.

A web site can point a name of its own at this machine, and its pages may then read what we answer,
because to the browser that is the same site. It cannot choose the header Host, which carries that
name. So a listener answers to names that it was told, and to addresses: an address in Host means
that no name was resolved. Kubelets ask a pod by its address, Prometheus asks the address of
its target; both are let through without further ado.

    on loopback      localhost, 127.0.0.1, [::1], and names that were told
    anywhere else    localhost, every address, the name it listens on, and names that were told
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

_LOOPBACK_NAME = "localhost"


class Hosts:
    """The names of one listener."""

    def __init__(self, listens_on: str = "127.0.0.1", names: Iterable[str] = ()) -> None:
        """Take the address that it listens on, and further names of it."""
        self._takes_addresses = not is_loopback(listens_on)
        own = () if _address(listens_on) is not None else (listens_on,)
        self._names = frozenset(one.lower().rstrip(".") for one in (*own, *names))

    def know(self, header: str) -> bool:
        """Say whether a request with this Host is for us.

        >>> Hosts("0.0.0.0", ["unisono-web.unisono-system.svc"]).know("10.1.2.3:8080")
        True
        >>> Hosts("0.0.0.0", ["unisono-web.unisono-system.svc"]).know("rebound.example:8080")
        False
        >>> Hosts("127.0.0.1").know("10.1.2.3:9401")
        False
        """
        host = host_of(header)
        if is_loopback(host) or host in self._names:
            return True
        return self._takes_addresses and _address(host) is not None


def host_of(header: str) -> str:
    """Return the host of a header Host, without port, brackets and the dot of the root.

    >>> host_of("LocalHost.:80"), host_of("[::1]:80"), host_of("[::1"), host_of("")
    ('localhost', '::1', '', '')
    """
    if header.startswith("["):
        host, bracket, _ = header[1:].partition("]")
        return host.lower() if bracket else ""
    return header.partition(":")[0].lower().rstrip(".")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by a name that no other machine can have.

    >>> [is_loopback(one) for one in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "localhost.evil")]
    [True, True, True, False, False]
    """
    address = _address(host)
    return host.lower() == _LOOPBACK_NAME if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
