"""An installation compared with a cluster: what is there, what is missing, what is in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unisono.cli.errors import AnswerIsNo
from unisono.cli.manifests import MANAGED_BY, NAME, Wanted, definitions, objects
from unisono.cli.preconditions import others
from unisono.control.upstream import KUEUE, Upstream
from unisono.kube.client import Client
from unisono.kube.mapping import Kind
from unisono.kube.trouble import NotFound

Json = dict[str, Any]
State = Literal["there", "missing", "kept", "conflict"]
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# A definition is hundreds of kilobytes, and an API server builds schemas from each.
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Item:
    """One object of an installation, and how it stands."""

    obj: Json
    state: State
    why: str = ""

    @property
    def name(self) -> str:
        """Kind, namespace and name."""
        metadata = self.obj["metadata"]
        place = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        return f"{self.obj['kind']} {place}"


@dataclass(frozen=True, slots=True)
class Found:
    """All of it, and who else is at work there."""

    items: Sequence[Item]
    others: Sequence[Upstream]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing and nothing is in the way."""
        return not self._runs_kueue() and all(one.state in ("there", "kept") for one in self.items)

    def lines(self) -> Iterator[str]:
        """Yield what to tell a person, one line for each."""
        for one in self.items:
            yield f"{one.state:<9} {one.name}" + (f": {one.why}" if one.why else "")
        for other in self.others:
            if other.operator == KUEUE:
                yield f"conflict  Kueue runs ({other.deployment}) and manages the same queues"
            else:
                yield f"respected {other.operator} runs ({other.deployment}); ours steps aside"

    def refuse_conflicts(self) -> None:
        """Raise if something is in the way."""
        lines = [line for line in self.lines() if line.startswith("conflict")]
        if lines:
            raise AnswerIsNo("\n".join(lines))

    def _runs_kueue(self) -> bool:
        return any(one.operator == KUEUE for one in self.others)


async def look(client: Client, wanted: Wanted, *, has_crds: bool) -> Found:
    """Compare; nothing is written."""
    there = {one["metadata"]["name"]: one for one in (await client.list(CRD)).items}
    items = [_definition(one, there) for one in (definitions() if has_crds else ())]
    for one in objects(wanted):
        items.append(Item(one, "there" if await _is_there(client, one) else "missing"))
    return Found(items, await others(client))


def _definition(ours: Json, there: dict[str, Json]) -> Item:
    theirs = there.get(ours["metadata"]["name"])
    if theirs is None:
        return Item(ours, "missing")
    if (theirs["metadata"].get("labels") or {}).get(MANAGED_BY) == NAME:
        return Item(ours, "there")
    served = [one["name"] for one in theirs["spec"]["versions"] if one.get("served")]
    needed = next(one["name"] for one in ours["spec"]["versions"] if one["storage"])
    if needed in served:
        return Item(ours, "kept", "somebody else's; it serves what we need")
    return Item(ours, "conflict", f"somebody else's; it serves {', '.join(served)}, not {needed}")


async def _is_there(client: Client, obj: Json) -> bool:
    metadata = obj["metadata"]
    kind = Kind(obj["apiVersion"], obj["kind"])
    try:
        await client.get(kind, metadata["name"], metadata.get("namespace", ""))
    except NotFound:
        return False
    return True


async def apply(client: Client, found: Found) -> list[str]:
    """Apply what is ours, definitions first; return a line for each."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one_by_some(item: Item) -> str:
        async with gate:
            return await _apply(client, item)

    ours = [one for one in found.items if one.state in ("there", "missing")]
    crds = [one for one in ours if one.obj["kind"] == CRD.kind]
    told = list(await asyncio.gather(*map(one_by_some, crds)))
    told += [await _apply(client, one) for one in ours if one.obj["kind"] != CRD.kind]
    return told


async def _apply(client: Client, item: Item) -> str:
    await client.apply(item.obj)
    return f"{'created' if item.state == 'missing' else 'applied':<9} {item.name}"
