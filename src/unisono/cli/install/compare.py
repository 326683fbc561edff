"""An installation compared with a cluster: what is there, what is missing, what is in the way."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from unisono.cli.install.manifests import (
    FLOW_SCHEMA,
    MANAGED_BY,
    NAME,
    RUNTIME,
    SERVICE_MONITOR,
    Wanted,
    admission,
    definitions,
    flows,
    objects,
    role_name,
    runtimes,
    service_monitor,
    version_read,
)
from unisono.control.names import CLUSTER_QUEUE
from unisono.control.rbac import PARTS
from unisono.kube.client import Client
from unisono.kube.errors import NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.kube.mapping import LEASE, Kind
from unisono.runtime import AnswerIsNo
from unisono.runtime.admission.policies import MUTATING, VALIDATING
from unisono.runtime.cluster.preconditions import KUEUE, NEEDED, Upstream, holders_of_leases, others
from unisono.runtime.webhook.configuration import KINDS, Which

Mechanism = Literal["auto", "policy", "webhook"]
State = Literal["there", "missing", "kept", "conflict", "without"]
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# A definition is hundreds of kilobytes, and an API server builds schemas from each.
_AT_ONCE = 4
# A kind is served a moment after its definition was stored; a busy server takes some seconds.
_SERVED_TRIES = 60
_SERVED_WAIT_S = 0.5

_NEEDED = {(kind.api_version.partition("/")[0], kind.kind) for kind in NEEDED}
_POLICIES: Mapping[Which, str] = {
    "validating": "ValidatingAdmissionPolicy",
    "mutating": "MutatingAdmissionPolicy",
}
_WITHOUT: Mapping[Which, str] = {
    "validating": "names of queues, negative counts and what tenants may not write are not checked",
    "mutating": "jobs are suspended after they are created",
}

_NO_CONDITIONS = (
    "the server evaluates no conditions (Kubernetes 1.28 does); what tenants may not write is not "
    "checked"
)


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
    """All items, and the other operators of the cluster."""

    items: Sequence[Item]
    others: Sequence[Upstream]
    queues: int = 0  # ClusterQueues that are there

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing and nothing is in the way."""
        fine = ("there", "kept", "without")
        return not self._runs_kueue() and all(one.state in fine for one in self.items)

    def lines(self) -> Iterator[str]:
        """Yield what to tell a person, one line for each."""
        for one in self.items:
            yield f"{one.state:<9} {one.name}" + (f": {one.why}" if one.why else "")
        for other in self.others:
            if other.operator == KUEUE:
                shared = f"and manages the same queues; ClusterQueues there: {self.queues}"
                yield f"conflict  Kueue runs ({other.deployment}) {shared}"
            else:
                yield f"respected {other.operator} runs ({other.deployment}); {_steps_aside(other)}"

    def refuse_conflicts(self) -> None:
        """Raise if something is in the way."""
        lines = [line for line in self.lines() if line.startswith("conflict")]
        if lines:
            raise AnswerIsNo("\n".join(lines))

    def _runs_kueue(self) -> bool:
        return any(one.operator == KUEUE for one in self.others)


def _steps_aside(other: Upstream) -> str:
    if other.operator == "volcano":
        return "its jobs, pod groups and queues are left to it"
    return "ours steps aside, and queues what it runs"


async def look(
    client: Client, wanted: Wanted, now: float, *, has_crds: bool, mechanism: Mechanism = "auto"
) -> Found:
    """Compare; nothing is written."""
    served = {} if mechanism == "webhook" else await served_admission(client)
    if mechanism != "policy":
        lacking = frozenset(one for one, kind in _POLICIES.items() if kind not in served)
        wanted = replace(
            wanted, webhooks=lacking, has_conditions=await has_conditions(client, lacking)
        )
    there = {one["metadata"]["name"]: one for one in (await client.list(CRD)).items}
    neighbours = await _neighbours(client, now)
    items = [_definition(one, there) for one in (definitions() if has_crds else ())]
    for one in objects(wanted):
        items.append(Item(one, "there" if await _found(client, one) is not None else "missing"))
    items += [one async for one in _rules(client, served, wanted)]
    items += [one async for one in _rights_left(client, wanted)]
    if await _is_served(client, SERVICE_MONITOR):
        items.append(await _item(client, service_monitor(wanted)))
    if await _is_served(client, FLOW_SCHEMA):
        items += [await _item(client, one) for one in flows(wanted)]
    comes_with_another = any(one.operator == "trainer" for one in neighbours)
    if not comes_with_another and (has_crds or await _is_served(client, RUNTIME)):
        items += [await _item(client, one) for one in runtimes()]
    return Found(items, neighbours, await _queues(client))


# Since when a server evaluates conditions of webhooks; one before it would forget them.
_CONDITIONS_SINCE = (1, 28)


async def has_conditions(client: Client, webhooks: Collection[Which]) -> bool:
    """Say whether a server can tell what to ask webhooks about, as far as that matters."""
    if "validating" not in webhooks:
        return True
    answer = json.loads(await client.read("/version"))
    # Some clouds write `28+`.
    version = [
        int(re.sub(r"[^0-9]", "", str(answer.get(part))) or 0) for part in ("major", "minor")
    ]
    return tuple(version) >= _CONDITIONS_SINCE


async def _neighbours(client: Client, now: float) -> Sequence[Upstream]:
    """Return the other operators, by Deployment or, if none is known, by their lease."""
    found = list(await others(client))
    known = {one.operator for one in found}
    leases = holders_of_leases((await client.list(LEASE)).items, now)
    return [*found, *(one for one in leases if one.operator not in known)]


async def _queues(client: Client) -> int:
    try:
        return len((await client.list(CLUSTER_QUEUE)).items)
    except (NotFound, UnknownKind):
        return 0


async def _rules(client: Client, served: Mapping[str, str], wanted: Wanted) -> AsyncIterator[Item]:
    """Yield the rules for jobs, and say what is not there or must not stay."""
    for one in admission(served, wanted.namespace):
        yield await _item(client, one)
    for which, kind in _POLICIES.items():
        if which in wanted.webhooks:
            if which == "validating" and not wanted.has_conditions:
                kind = KINDS[which].kind
                yield Item({"kind": kind, "metadata": {"name": NAME}}, "without", _NO_CONDITIONS)
            continue
        if kind not in served:
            why = f"the server does not know them; {_WITHOUT[which]}"
            yield Item({"kind": kind, "metadata": {"name": NAME}}, "without", why)
        api_version, name = KINDS[which]
        left = {"apiVersion": api_version, "kind": name, "metadata": {"name": NAME}}
        if await _found(client, left) is not None:
            # No webhook would answer, and the server would refuse every job of a queue.
            remedy = f"kubectl delete {name.lower()} {NAME}"
            yield Item(left, "conflict", f"no webhook is wanted any more; first: {remedy}")


async def _rights_left(client: Client, wanted: Wanted) -> AsyncIterator[Item]:
    """Yield bindings of roles that are not wanted any more: our account would keep their rights."""
    for part in PARTS:
        if part in wanted.parts:
            continue
        left = {**_BINDING, "metadata": {"name": role_name(part)}}
        if await _found(client, left) is not None:
            remedy = f"kubectl delete clusterrolebinding {role_name(part)}"
            yield Item(left, "conflict", f"{part} is not wanted any more; first: {remedy}")


_BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}


async def served_admission(client: Client) -> Mapping[str, str]:
    """Return in which API version each kind of rules is served."""
    wanted: Iterable[tuple[str, Sequence[str]]] = (
        ("ValidatingAdmissionPolicy", (VALIDATING,)),
        ("MutatingAdmissionPolicy", MUTATING),
    )
    found = {}
    for kind, versions in wanted:
        for version in versions:
            if await _is_served(client, Kind(version, kind)):
                found[kind] = version
                break
    return found


def _definition(ours: Json, there: Mapping[str, Json]) -> Item:
    theirs = there.get(ours["metadata"]["name"])
    if theirs is None:
        return Item(ours, "missing")
    if (theirs["metadata"].get("labels") or {}).get(MANAGED_BY) == NAME:
        return _ours(ours, theirs)
    served = [one["name"] for one in theirs["spec"]["versions"] if one.get("served")]
    needed = version_read(ours)
    if needed in served:
        return Item(ours, "kept", "installed by others; it serves what we need")
    lacking = f"installed by others; it serves {', '.join(served)}, not {needed}"
    if (ours["spec"]["group"], ours["spec"]["names"]["kind"]) in _NEEDED:
        return Item(ours, "conflict", lacking)
    return Item(ours, "kept", f"{lacking}; what is made of it is left alone")


def _ours(ours: Json, theirs: Json) -> Item:
    """Compare with what another version of ours has brought: nothing that is stored may be lost."""
    known = {one["name"] for one in ours["spec"]["versions"]}
    stored = (theirs.get("status") or {}).get("storedVersions") or ()
    lost = [one for one in stored if one not in known]
    if lost:
        why = f"objects may be stored as {', '.join(lost)}, which this version does not know"
        return Item(ours, "conflict", why)
    return Item(ours, "there")


async def _item(client: Client, obj: Json) -> Item:
    """Compare an object that others may have installed."""
    found = await _found(client, obj)
    if found is None:
        return Item(obj, "missing")
    if (found["metadata"].get("labels") or {}).get(MANAGED_BY) == NAME:
        return Item(obj, "there")
    return Item(obj, "kept", "installed by others")


async def _found(client: Client, obj: Json) -> Json | None:
    metadata = obj["metadata"]
    kind = Kind(obj["apiVersion"], obj["kind"])
    try:
        return await client.get(kind, metadata["name"], metadata.get("namespace", ""))
    except (NotFound, UnknownKind):
        return None


async def _is_served(client: Client, kind: Kind) -> bool:
    try:
        await client.page(kind, "", {"limit": "1"})
    except (NotFound, UnknownKind):
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
    changes = list(await asyncio.gather(*map(one_by_some, crds)))
    for one in ours:
        if one.obj["kind"] == RUNTIME.kind:
            await _until_served(client, RUNTIME)
        if one.obj["kind"] != CRD.kind:
            changes.append(await _apply(client, one))
    return changes


async def _until_served(client: Client, kind: Kind) -> None:
    for _ in range(_SERVED_TRIES):
        if await _is_served(client, kind):
            return
        await asyncio.sleep(_SERVED_WAIT_S)


async def _apply(client: Client, item: Item) -> str:
    await client.apply(item.obj)
    return f"{'created' if item.state == 'missing' else 'applied':<9} {item.name}"
