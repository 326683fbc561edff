"""Kinds made by hand, for tests that should not depend on the whole catalogue."""

from __future__ import annotations

from unisono.kinds.shapes.served import Column, Served
from unisono.kinds.shapes.shape import Shape


def kind(
    group: str,
    version: str,
    name: str,
    *,
    plural: str = "",
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    namespaced: bool = True,
) -> Served:
    """Return a kind with an empty schema."""
    singular = name.lower()
    return Served(
        group=group,
        version=version,
        kind=name,
        plural=plural or f"{singular}s",
        singular=singular,
        namespaced=namespaced,
        short_names=short,
        categories=categories,
        subresources=subresources,
        columns=columns,
        shape=Shape({}, lambda _: {}),
    )
