"""An address for every pod, in 127.64.0.0/10: all of it is this machine, so servers can bind there.

The address follows from the pod's uid; where two pods would share one, the later gets the next that
is free. Addresses are in the pods' statuses, so `learn` finds them again after a restart.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address, IPv4Network

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
