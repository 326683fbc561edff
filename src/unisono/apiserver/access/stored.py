"""The roles and bindings of a store, read for the authoriser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unisono.apiserver.access.authorize import Authorizer
from unisono.apiserver.access.roles import GROUP
from unisono.apiserver.storage.record import Change
from unisono.apiserver.storage.store import Store


def authorizer_for(store: Store) -> Authorizer:
    """Return an authoriser that goes by what a store holds, and notices when that changes."""
    changes = 0

    def count(change: Change) -> None:
        nonlocal changes
        if change.record.key[0].startswith(f"{GROUP}/"):
            changes += 1

    def every(key: str) -> Iterator[Mapping[str, Any]]:
        return (record.load() for record in store.listing(key))

    store.on_change.append(count)
    return Authorizer(every, lambda: changes)
