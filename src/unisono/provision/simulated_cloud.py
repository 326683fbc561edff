"""The simulated cloud: fulfils NodeClaims as Karpenter and its clouds do.

    claim ──api──▶ Launched ──boot──▶ Registered: a Node ──plugin──▶ Initialized: with its GPUs
       └─ out of stock: the claim says so and is deleted

All claims of a purchase are judged together where the cloud is atomic; elsewhere as many are
launched as there are. A claim that is deleted takes its node along: pods first, then the node, then
the machine. Nothing is kept in memory: what is launched is what claims say.

Its configuration is the ConfigMap kube-system/unisono-cloud, key cloud.yaml:

    region: ap-northeast-2
    stock: {g6e.48xlarge:ap-northeast-2a:on-demand: 1}   unlimited where nothing is set
    latency: {api: 3s, boot: 60s, plugin: 30s, startup: 0s, spread: 0}
    failures: {launch: 0, register: 0, initialize: 0}    the share of machines that never get there
    interruptionsPerHour: 0                              of one spot machine
    atomic: true                                         all machines of a purchase, or none
    seed: 0
    instanceTypes: [...]                                 more types, as in the catalogue

Every random draw depends on the seed, the machine and the step alone, so that a run can be
repeated. Spec provisioning §5.11.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import msgspec

from unisono.control import names
from unisono.control.actions import Again, Create, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import find, is_true, seconds, timestamp, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kinds.karpenter import Overlay
from unisono.kinds.nearest import nearest
from unisono.kinds.scalar import duration_ms
from unisono.kinds.yaml_values import Unreadable, yaml_documents
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision import keys
from unisono.provision.catalog.instance_types import MachineType, home_region, machine_types
from unisono.provision.catalog.nodes import bought_node, capacity_of
from unisono.provision.catalog.offers import overlays_in, with_devices
from unisono.provision.claims import created_at, launched_at, node_name, state_of, wanted_of
from unisono.provision.occupancy import is_on

_BOOT_SIGMA = 0.557  # of a lognormal law: one boot in twenty takes two and a half times the median


class Latency(msgspec.Struct, frozen=True):
    """How long steps take, and how much that varies (0: not at all, 1: as in clouds)."""

    api: str = "3s"
    boot: str = "60s"
    plugin: str = "30s"
    startup: str = "0s"
    spread: float = 0.0


class Failures(msgspec.Struct, frozen=True):
    """Which share of machines never gets through a step."""

    launch: float = 0.0
    register: float = 0.0
    initialize: float = 0.0


class Cloud(msgspec.Struct, frozen=True, rename="camel"):
    """The whole cloud."""

    region: str = ""
    stock: Mapping[str, int] = {}
    latency: Latency = Latency()
    failures: Failures = Failures()
    interruptions_per_hour: float = 0.0
    atomic: bool = True
    seed: int = 0
    instance_types: tuple[MachineType, ...] = ()

    @property
    def home(self) -> str:
        """Where machines are bought if no pool says."""
        return self.region or home_region()

    def left(self, machine: str, zone: str, sold: str) -> int | None:
        """Return how many of an offer there are in all; None: without end."""
        for key in (f"{machine}:{zone}:{sold}", f"{machine}:{zone}", machine):
            if key in self.stock:
                return self.stock[key]
        return None

    def seconds(self, step: str, claim: str) -> float:
        """Return how long a step of a machine takes."""
        median = duration_ms(getattr(self.latency, step)) / 1000
        if not self.latency.spread:
            return median
        normal = NormalDist(0.0, _BOOT_SIGMA * self.latency.spread)
        return float(median * 2.718281828459045 ** normal.inv_cdf(self.draw(step, claim)))

    def fails(self, step: str, claim: str) -> bool:
        """Say whether a machine never gets through a step."""
        share: float = getattr(self.failures, step)
        return share > 0 and self.draw(f"fail-{step}", claim) < share

    def draw(self, what: str, claim: str) -> float:
        """Return a number between 0 and 1 that depends on nothing else."""
        digest = hashlib.sha256(f"{self.seed}|{what}|{claim}".encode()).digest()
        return (int.from_bytes(digest[:7], "big") + 0.5) / 2**56


def cloud_of(config_map: Json | None) -> Cloud:
    """Read the cloud of an embedded cluster; what cannot be read counts as not said."""
    return read_cloud(config_map)[0]


def read_cloud(config_map: Json | None) -> tuple[Cloud, str]:
    """Read the cloud of an embedded cluster, and say what of it cannot be read."""
    text = ((config_map or {}).get("data") or {}).get("cloud.yaml")
    if not text:
        return Cloud(), ""
    try:
        raw: Any = next(yaml_documents(text), None) or {}
        cloud = msgspec.convert(raw, Cloud, strict=False)
        for step in ("api", "boot", "plugin", "startup"):
            duration_ms(getattr(cloud.latency, step))
    except (ValueError, Unreadable, msgspec.ValidationError) as error:
        return Cloud(), f"cloud.yaml cannot be read, and counts as empty: {error}"
    known = {field.encode_name for field in msgspec.structs.fields(Cloud)}
    others = sorted(set(raw) - known)
    if others:
        near = nearest(others[0], sorted(known))
        hint = f'; did you mean "{near}"?' if near else ""
        return cloud, f'cloud.yaml: unknown field "{others[0]}"{hint}'
    return cloud, ""


_NOTICE = 120.0  # before a spot machine is taken away


class SimulatedCloud:
    """Launches, registers and terminates machines."""

    name = "cloud"
    watches: Sequence[Kind] = (names.NODE_CLAIM, names.NODE, names.POD, names.CONFIG_MAP)
    idle_without: Kind = names.NODE_CLAIM

    def __init__(self, speed: float = 1.0) -> None:
        """Time runs so many times faster there."""
        self._speed = speed

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A claim, that of a node or of a pod's node; all of them if the cloud changes."""
        if kind == names.NODE_CLAIM:
            yield own_key(obj)
        elif kind == names.NODE:
            yield Key("", obj["metadata"]["name"])
        elif kind == names.POD:
            if node := obj["spec"].get("nodeName"):
                yield Key("", node)
        elif obj["metadata"]["name"] == keys.CLOUD:
            for claim in view.all(names.NODE_CLAIM):
                yield own_key(claim)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one machine a step further."""
        claim = view.get(names.NODE_CLAIM, key.name)
        if claim is None:
            return
        cloud = cloud_of(view.get(names.CONFIG_MAP, keys.CLOUD, keys.SYSTEM))
        if "deletionTimestamp" in claim["metadata"]:
            yield from self._terminate(claim, view)
            return
        finalizers = claim["metadata"].get("finalizers") or []
        if keys.TERMINATION not in finalizers:
            claim = yield Patch(
                Ref.to(claim), {"metadata": {"finalizers": [*finalizers, keys.TERMINATION]}}
            )
        state = state_of(claim)
        if state == "refused":
            yield Delete(Ref.to(claim))
        elif state == "launching":
            yield from self._launch(claim, cloud, view, now)
        elif not node_name(claim):
            yield from self._register(claim, cloud, view, now)
        else:
            yield from self._initialize(claim, cloud, view, now)

    # ---- launching ---------------------------------------------------------------------------

    def _launch(self, claim: Json, cloud: Cloud, view: View, now: float) -> Steps:
        due = created_at(claim) + self._takes(cloud, "api", claim)
        if now < due:
            yield Again(due)
            return
        name = claim["metadata"]["name"]
        if cloud.fails("launch", name):
            return
        machine = _type_of(claim, cloud, overlays_in(view))
        if machine is None:
            yield from _refuse(claim, "Unsupported", "unknown instance type", now)
            return
        batch = _batch(claim, view, is_atomic=cloud.atomic)
        if batch is None:  # the rest of the purchase is still being written
            return
        if not _is_in_stock(claim, batch, cloud, view):
            text = f"{machine.name} is out of stock in {wanted_of(claim, keys.ZONE)}"
            yield from _refuse(claim, "InsufficientCapacityError", text, now)
            return
        zone = wanted_of(claim, keys.ZONE)
        labels = {key: wanted_of(claim, key) for key in (keys.INSTANCE_TYPE, keys.ZONE)}
        labels[keys.CAPACITY_TYPE] = wanted_of(claim, keys.CAPACITY_TYPE)
        claim = yield Patch(Ref.to(claim), {"metadata": {"labels": labels}})
        conditions = with_condition(
            (claim.get("status") or {}).get("conditions"),
            "Launched",
            "True",
            "Launched",
            "the machine is there",
            now=now,
        )
        status = {
            "conditions": conditions,
            "providerID": f"sim:///{zone}/{name}",
            "imageID": "simulated",
            "capacity": capacity_of(machine),
            "allocatable": dict(machine.allocatable),
        }
        yield Patch(Ref.to(claim), {"status": status}, "status")

    # ---- becoming a node ---------------------------------------------------------------------

    def _register(self, claim: Json, cloud: Cloud, view: View, now: float) -> Steps:
        name = claim["metadata"]["name"]
        due = launched_at(claim) + self._takes(cloud, "boot", claim)
        if now < due:
            yield Again(due)
            return
        machine = _type_of(claim, cloud, overlays_in(view))
        if machine is None or cloud.fails("register", name):
            return
        if view.get(names.NODE, name) is None:
            place = sum(1 for _ in view.all(names.NODE))
            yield Create(bought_node(claim, machine, place, now=timestamp(now)))
        conditions = claim["status"]["conditions"]
        conditions = with_condition(
            conditions, "Registered", "True", "Registered", "the node is there", now=now
        )
        status = {"nodeName": name, "conditions": conditions}
        yield Patch(Ref.to(claim), {"status": status}, "status")

    def _initialize(self, claim: Json, cloud: Cloud, view: View, now: float) -> Steps:
        node = view.get(names.NODE, node_name(claim))
        if node is None or "deletionTimestamp" in node["metadata"]:
            yield Delete(Ref.to(claim))  # the node was deleted: the machine is of no use without it
            return
        if state_of(claim) == "ready":
            yield from self._interrupt(claim, node, cloud, view, now)
            return
        name = claim["metadata"]["name"]
        registered = find(claim["status"]["conditions"], "Registered")
        since = seconds(registered["lastTransitionTime"]) if registered is not None else now
        due = since + self._takes(cloud, "plugin", claim)
        if now < due:
            yield Again(due)
            return
        if cloud.fails("initialize", name):
            return
        wanted = dict(claim["status"]["allocatable"])
        if (node["status"].get("allocatable") or {}) != wanted:
            capacity = claim["status"]["capacity"]
            changes = {"status": {"allocatable": wanted, "capacity": capacity}}
            yield Patch(Ref.to(node), changes, "status")
            return
        startup = {one["key"] for one in claim["spec"].get("startupTaints") or ()}
        taints = node["spec"].get("taints") or []
        if any(one["key"] in startup for one in taints):
            due += self._takes(cloud, "startup", claim)
            if now < due:
                yield Again(due)
                return
            kept = [one for one in taints if one["key"] not in startup]
            yield Patch(Ref.to(node), {"spec": {"taints": kept or None}})
            return
        ready = find(node["status"].get("conditions"), "Ready")
        if ready is None or ready["status"] != "True":
            return
        if (node["metadata"].get("labels") or {}).get(keys.INITIALIZED) != "true":
            yield Patch(Ref.to(node), {"metadata": {"labels": {keys.INITIALIZED: "true"}}})
        conditions = claim["status"]["conditions"]
        for kind, text in (("Initialized", "the node has all it needs"), ("Ready", "")):
            conditions = with_condition(conditions, kind, "True", kind, text, now=now)
        yield Patch(Ref.to(claim), {"status": {"conditions": conditions}}, "status")

    # ---- going -------------------------------------------------------------------------------

    def _interrupt(self, claim: Json, node: Json, cloud: Cloud, view: View, now: float) -> Steps:
        """Take a spot machine away, some day, after a notice to the workloads on it."""
        rate = cloud.interruptions_per_hour
        if rate <= 0 or wanted_of(claim, keys.CAPACITY_TYPE) != "spot":
            return
        name = claim["metadata"]["name"]
        lives = -math.log(cloud.draw("interruption", name)) / rate * 3600 / self._speed
        end = launched_at(claim) + lives
        notice = end - _NOTICE / self._speed
        if now < notice:
            yield Again(notice)
        elif now < end:
            text = f"the machine is taken away at {timestamp(end)}"
            yield Note(Ref.to(claim), "SpotInterrupted", text, "Warning")
            for workload in view.all(names.WORKLOAD):
                if is_on(workload, node):
                    about = f"node {node['metadata']['name']}: {text}"
                    yield Note(Ref.to(workload), "SpotInterrupted", about, "Warning")
            yield Again(end)
        else:
            yield Delete(Ref.to(claim))

    def _terminate(self, claim: Json, view: View) -> Steps:
        """Let pods go, then the node, then the machine."""
        finalizers = claim["metadata"].get("finalizers") or []
        if keys.TERMINATION not in finalizers:
            return
        node = view.get(names.NODE, node_name(claim)) if node_name(claim) else None
        if node is not None:
            yield from self._drain(node, view)
            return
        left = [one for one in finalizers if one != keys.TERMINATION]
        yield Patch(Ref.to(claim), {"metadata": {"finalizers": left}}, exact=False)

    def _drain(self, node: Json, view: View) -> Steps:
        """Close a node, let its pods go, and then the node itself."""
        if "deletionTimestamp" not in node["metadata"]:
            yield Delete(Ref.to(node))
            return
        pods = [
            pod
            for pod in view.by(names.POD, "node", node["metadata"]["name"])
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                yield Delete(Ref.to(pod))
        if not pods:
            finalizers = node["metadata"].get("finalizers") or []
            left = [one for one in finalizers if one != keys.TERMINATION]
            yield Patch(Ref.to(node), {"metadata": {"finalizers": left}}, exact=False)

    def _takes(self, cloud: Cloud, step: str, claim: Json) -> float:
        return cloud.seconds(step, claim["metadata"]["name"]) / self._speed


def _refuse(claim: Json, reason: str, text: str, now: float) -> Steps:
    """Say that a machine is unavailable; its workload sees that before the claim is deleted."""
    conditions = with_condition(
        (claim.get("status") or {}).get("conditions"), "Launched", "False", reason, text, now=now
    )
    yield Patch(Ref.to(claim), {"status": {"conditions": conditions}}, "status")
    yield Note(Ref.to(claim), reason, text, "Warning")


def _type_of(claim: Json, cloud: Cloud, overlays: Sequence[Overlay]) -> MachineType | None:
    name = wanted_of(claim, keys.INSTANCE_TYPE)
    own = {one.name: one for one in cloud.instance_types}
    machine = own.get(name) or machine_types().get(name)
    return None if machine is None else with_devices({name: machine}, overlays)[name]


def _batch(claim: Json, view: View, *, is_atomic: bool) -> list[Json] | None:
    """Return the claims that are judged together; None as long as some are not there yet."""
    plan = (claim["metadata"].get("labels") or {}).get(keys.PLAN, "")
    size = whole_number((claim["metadata"].get("annotations") or {}).get(keys.PLAN_SIZE))
    if not is_atomic or not plan or size is None:
        return [claim]
    same = [
        one
        for one in view.all(names.NODE_CLAIM)
        if (one["metadata"].get("labels") or {}).get(keys.PLAN) == plan
    ]
    return same if len(same) >= size else None


def _is_in_stock(claim: Json, batch: list[Json], cloud: Cloud, view: View) -> bool:
    """Say whether there are enough machines of every offer that a batch needs."""
    if any(state_of(one) == "refused" for one in batch):
        return False
    offers = {_offer(one) for one in batch}
    for offer in offers:
        left = cloud.left(*offer)
        if left is None:
            continue
        mine = [one for one in batch if _offer(one) == offer]
        used = sum(
            1
            for one in view.all(names.NODE_CLAIM)
            if _offer(one) == offer and _is_launched(one) and one not in mine
        )
        already = sum(1 for one in mine if _is_launched(one))
        if used + max(already, 0) + len(mine) - already > left:
            return False
    return True


def _is_launched(claim: Json) -> bool:
    return is_true((claim.get("status") or {}).get("conditions"), "Launched")


def _offer(claim: Json) -> tuple[str, str, str]:
    return (
        wanted_of(claim, keys.INSTANCE_TYPE),
        wanted_of(claim, keys.ZONE),
        wanted_of(claim, keys.CAPACITY_TYPE),
    )
