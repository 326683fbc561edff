"""Plays Karpenter on an API server, as its documentation says that it behaves.

    NodeClaim ──launch──▶ Launched ──boot──▶ a Node of another name: not ready, tainted
              karpenter.sh/unregistered, with the taints of the claim and without its GPUs
       ──▶ Registered: labels, that taint gone, ready ──▶ GPUs found, startup taints gone
       ──▶ Initialized

A claim that cannot be had is deleted without another word. A claim that is deleted drains its node,
then the node goes, then the claim's finalizer. Pods behind a gate do not exist for it. A node that
has no pods, and that nothing protects from disruption, is removed after a while. It looks at
everything again and again and keeps nothing but the time at which each step is due.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.real.cluster import asked
from tests.real.control_plane import ControlPlane
from unisono.control import names
from unisono.control.conditions import is_true, timestamp, with_condition
from unisono.kube.client import Client
from unisono.kube.errors import Conflict, KubeError, NotFound
from unisono.kube.form import Json
from unisono.provision import keys
from unisono.provision.catalog.instance_types import machine_types
from unisono.provision.claims import node_name, wanted_of

GPU = "nvidia.com/gpu"
_EVERY_S = 0.2
# Of nodes that have just come; the second is put there by the API server itself.
_EPHEMERAL = (keys.UNREGISTERED, "node.kubernetes.io/not-ready")


@dataclass
class Karpenter:
    """What it does with claims, and what it has seen."""

    clock: Callable[[], float] = time.time
    out_of_stock: set[str] = field(default_factory=set)  # zones
    # How long the device plugin of a machine takes, in order of registration; the last one stays.
    plugin_s: tuple[float, ...] = (0.0,)
    stock: dict[str, int] = field(default_factory=dict)  # how many a zone has; else without end
    boot_s: float = 0.0
    empty_s: float | None = None  # how long an empty node stays; None: for ever
    refused: list[str] = field(default_factory=list)  # zones of claims that could not be had
    registered: list[str] = field(default_factory=list)  # claims
    initialized: list[str] = field(default_factory=list)
    _due: dict[str, float] = field(default_factory=dict)
    _empty: dict[str, float] = field(default_factory=dict)
    _launched: Counter[str] = field(default_factory=Counter)

    async def look(self, client: Client) -> None:
        """Take every claim one step further."""
        nodes = {one["metadata"]["name"]: one for one in (await client.list(names.NODE)).items}
        claims = (await client.list(names.NODE_CLAIM)).items
        self._launched = Counter(
            wanted_of(one, keys.ZONE)
            for one in claims
            if is_true((one.get("status") or {}).get("conditions"), "Launched")
        )
        for claim in claims:
            try:
                await self._step(client, claim, nodes.get(node_name(claim)))
            except (Conflict, NotFound):
                continue  # another write was faster; it is looked at again

    async def _step(self, client: Client, claim: Json, node: Json | None) -> None:
        name, metadata = claim["metadata"]["name"], claim["metadata"]
        conditions = (claim.get("status") or {}).get("conditions")
        if "deletionTimestamp" in metadata:
            await self._terminate(client, claim, node)
        elif keys.TERMINATION not in (metadata.get("finalizers") or ()):
            kept = {"finalizers": [*(metadata.get("finalizers") or ()), keys.TERMINATION]}
            await client.patch(names.NODE_CLAIM, name, "", {"metadata": kept})
        elif not conditions and not self._is_in_stock(claim):
            self.refused.append(wanted_of(claim, keys.ZONE))
            await client.delete(names.NODE_CLAIM, name)
        elif not is_true(conditions, "Launched"):
            await self._launch(client, claim)
        elif node is None:
            await self._join(client, claim)
        elif not is_true(conditions, "Registered"):
            await self._register(client, claim, node)
        elif not is_true(conditions, "Initialized"):
            await self._initialize(client, claim, node)
        elif self.empty_s is not None:
            await self._reclaim(client, claim, node)

    def _is_in_stock(self, claim: Json) -> bool:
        zone = wanted_of(claim, keys.ZONE)
        left = self.stock.get(zone, 1 << 30) - self._launched[zone]
        return zone not in self.out_of_stock and left > 0

    # ---- on its way ------------------------------------------------------------------------------

    async def _launch(self, client: Client, claim: Json) -> None:
        machine = machine_types()[wanted_of(claim, keys.INSTANCE_TYPE)]
        labels = {
            key: wanted_of(claim, key)
            for key in (keys.INSTANCE_TYPE, keys.ZONE, keys.CAPACITY_TYPE)
        }
        name = claim["metadata"]["name"]
        await client.patch(names.NODE_CLAIM, name, "", {"metadata": {"labels": labels}})
        allocatable = dict(machine.allocatable)
        machine_id = f"unisono:///{labels[keys.ZONE]}/i-{name}"
        more = {"providerID": machine_id, "capacity": allocatable, "allocatable": allocatable}
        self._launched[labels[keys.ZONE]] += 1
        self._due[name] = self.clock() + self.boot_s
        await self._say(client, claim, "Launched", **more)

    async def _join(self, client: Client, claim: Json) -> None:
        """The kubelet of the new machine comes to the cluster, under a name of its own."""
        if self.clock() < self._due[claim["metadata"]["name"]]:
            return
        spec, status = claim["spec"], claim["status"]
        name = f"ip-10-0-{len(self.registered)}-{claim['metadata']['name'][-5:]}.internal"
        taints = [
            {"key": keys.UNREGISTERED, "effect": "NoExecute"},
            *(spec.get("taints") or ()),
            *(spec.get("startupTaints") or ()),
        ]
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {names.HOSTNAME: name.partition(".")[0]}},
            "spec": {"providerID": status["providerID"], "taints": taints},
        }
        await client.create(node)
        few = {key: text for key, text in status["allocatable"].items() if key != GPU}
        await self._node_status(client, name, few, "False")
        await self._say(client, claim, "Launched", nodeName=name)

    async def _register(self, client: Client, claim: Json, node: Json) -> None:
        name = node["metadata"]["name"]
        kept = [one for one in node["spec"]["taints"] if one["key"] not in _EPHEMERAL]
        labels = {**claim["metadata"]["labels"], keys.REGISTERED: "true"}
        metadata = {
            "labels": labels,
            "annotations": claim["metadata"].get("annotations"),
            "finalizers": [keys.TERMINATION],
        }
        await client.patch(names.NODE, name, "", {"metadata": metadata, "spec": {"taints": kept}})
        await self._node_status(client, name, node["status"]["allocatable"], "True")
        place = min(len(self.registered), len(self.plugin_s) - 1)
        self._due[claim["metadata"]["name"]] = self.clock() + self.plugin_s[place]
        self.registered.append(claim["metadata"]["name"])
        await self._say(client, claim, "Registered")

    async def _initialize(self, client: Client, claim: Json, node: Json) -> None:
        """GPUs are counted first, then the startup taints are removed."""
        name, own = node["metadata"]["name"], claim["metadata"]["name"]
        if self.clock() < self._due[own]:
            return
        startup = {one["key"] for one in claim["spec"].get("startupTaints") or ()}
        taints = node["spec"].get("taints") or []
        if node["status"]["allocatable"] != claim["status"]["allocatable"]:
            await self._node_status(client, name, claim["status"]["allocatable"], "True")
        elif any(one["key"] in startup for one in taints):
            kept = [one for one in taints if one["key"] not in startup]
            await client.patch(names.NODE, name, "", {"spec": {"taints": kept or None}})
        else:
            labels = {"metadata": {"labels": {keys.INITIALIZED: "true"}}}
            await client.patch(names.NODE, name, "", labels)
            self.initialized.append(own)
            await self._say(client, claim, "Initialized")

    async def _say(self, client: Client, claim: Json, condition: str, **more: Any) -> None:
        conditions = with_condition(
            (claim.get("status") or {}).get("conditions"),
            condition,
            "True",
            condition,
            "",
            now=self.clock(),
        )
        changes = {"status": {"conditions": conditions, **more}}
        name = claim["metadata"]["name"]
        await client.patch(names.NODE_CLAIM, name, "", changes, subresource="status")

    # ---- going -----------------------------------------------------------------------------------

    async def _terminate(self, client: Client, claim: Json, node: Json | None) -> None:
        if node is None:
            await client.patch(
                names.NODE_CLAIM, claim["metadata"]["name"], "", {"metadata": {"finalizers": None}}
            )
            return
        name = node["metadata"]["name"]
        pods = [
            pod
            for pod in (await client.list(names.POD)).items
            if pod["spec"].get("nodeName") == name
        ]
        for pod in pods:
            metadata = pod["metadata"]
            await client.delete(names.POD, metadata["name"], metadata["namespace"])
        await client.delete(names.NODE, name)
        if not pods:
            await client.patch(names.NODE, name, "", {"metadata": {"finalizers": None}})

    async def _reclaim(self, client: Client, claim: Json, node: Json) -> None:
        """Give an empty node back, unless something protects it."""
        name, own = node["metadata"]["name"], claim["metadata"]["name"]
        held = keys.DO_NOT_DISRUPT in (node["metadata"].get("annotations") or {})
        pods = (await client.list(names.POD)).items
        is_used = any(
            pod["spec"].get("nodeName") == name
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            for pod in pods
        )
        if held or is_used:
            self._empty.pop(own, None)
        elif self.clock() >= self._empty.setdefault(own, self.clock()) + (self.empty_s or 0.0):
            await client.delete(names.NODE_CLAIM, own)

    async def _node_status(self, client: Client, name: str, allocatable: Json, ready: str) -> None:
        now = timestamp(self.clock())
        condition = {
            "type": "Ready",
            "status": ready,
            "reason": "Kubelet",
            "message": "",
            "lastTransitionTime": now,
            "lastHeartbeatTime": now,
        }
        changes = {"allocatable": allocatable, "capacity": allocatable, "conditions": [condition]}
        await client.patch(names.NODE, name, "", {"status": changes}, subresource="status")


@contextmanager
def at_work(plane: ControlPlane) -> Iterator[Karpenter]:
    """Have it look at claims until the block ends."""
    found = Karpenter()
    stop = threading.Event()

    def keep_looking() -> None:
        while not stop.wait(_EVERY_S):
            try:
                asked(plane, found.look)
            except KubeError:
                continue

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join(20)
