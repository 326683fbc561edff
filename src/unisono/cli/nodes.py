"""`unisono nodes`: what there is of each node and how much pods have asked for; and more nodes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from unisono.cli.connection import asked, verb_parser
from unisono.cli.listing import Sheet, add_form, show
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds import views

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json

EXAMPLES = """\
examples:
  unisono nodes
  unisono nodes -w
  unisono nodes -o json
  unisono nodes --add 1xg6e.48xlarge
"""

_OURS = "unisono:///"  # how the identity of a node begins that exists only here

_PRICE = "unisono.dev/price-usd-hour"
_TYPE = "node.kubernetes.io/instance-type"
_ZONE = "topology.kubernetes.io/zone"


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("List nodes and how much of them is requested.", EXAMPLES)
    add_form(made)
    made.add_argument(
        "--add",
        metavar="SHAPE",
        help="add nodes to an embedded cluster: COUNTxTYPE[@ZONE],…, COUNTx{gpu=8,cpu=96,…}",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print them."""

    async def work(client: Client, given: argparse.Namespace) -> int:
        if given.add is not None:
            return await add(client, given.add)
        return await show(client, given, read)

    return asked(arguments, work)


async def add(client: Client, shape: str) -> int:
    """Make nodes of a shape, after those that there are."""
    from unisono.control.conditions import timestamp
    from unisono.control.names import NODE
    from unisono.provision.catalog.nodes import BadShape, nodes_of, parse_shape
    from unisono.runtime.clock import RealClock

    try:
        groups = parse_shape(shape)
    except BadShape as error:
        raise InvalidManifest("--add", str(error)) from error
    there = [*map(views.Node, (await client.list(NODE)).items)]
    if any(not (one.spec.provider_id or _OURS).startswith(_OURS) for one in there):
        raise InvalidManifest("--add", "this cluster has real nodes; add machines to it instead")
    taken = frozenset(one.name for one in there)
    for node in nodes_of(groups, now=timestamp(RealClock().now()), taken=taken):
        await client.create(node)
        print(f"node/{node['metadata']['name']} created")
    return 0


async def read(client: Client, arguments: argparse.Namespace) -> list[Sheet]:
    """Return the sheet."""
    from unisono.control.names import NODE, POD

    nodes = (await client.list(NODE)).items
    pods = (await client.list(POD)).items
    found = listed(nodes, pods)
    claims = await read_claims(client)
    bought = {one["node"]: one for one in claims if one["node"]}
    headings: tuple[str, ...] = ("NAME", "STATUS", "TYPE", "PODS", "GPUS", "CPU", "MEMORY")
    if claims:
        headings = (*headings, "US$/H", "HELD FOR")
    rows = [
        (
            one["name"],
            one["status"],
            one["type"],
            *(_cell(one["resources"], name) for name in ("pods", "gpus", "cpu", "memory")),
            *(price_and_holder(one, bought) if claims else ()),
        )
        for one in found
    ]
    more = {"ZONE": [one["zone"] for one in found], "ADDRESS": [one["address"] for one in found]}
    sheets = [Sheet("nodes", headings, rows, found, more, tuple(notes(found)))]
    coming = [one for one in claims if not one["node"]]
    return [*sheets, claim_sheet(coming)] if coming else sheets


def listed(nodes: Iterable[Json], pods: Iterable[Json]) -> list[Json]:
    """Return nodes as rows, by name."""
    by_node: dict[str, list[views.Pod]] = {}
    for pod in map(views.Pod, pods):
        on = pod.spec.node_name
        if on and not pod.is_over:
            by_node.setdefault(on, []).append(pod)
    ordered = sorted(map(views.Node, nodes), key=lambda node: node.name)
    return [_row(node, by_node.get(node.name, [])) for node in ordered]


def _row(node: views.Node, pods: list[views.Pod]) -> Json:
    from unisono.kinds.device_faults import left_open
    from unisono.kinds.quantity import Quantity, format_amount

    wanted: dict[str, int] = {"pods": len(pods)}
    for pod in pods:
        for name, amount in _requests(pod).items():
            wanted[name] = wanted.get(name, 0) + amount
    resources = {
        name: {
            "used": format_amount(wanted.get(name, 0), name),
            "allocatable": format_amount(Quantity.from_raw(there).amount(name), name),
        }
        for name, there in node.status.allocatable.items()
    }
    labels = node.metadata.labels
    return {
        "name": node.name,
        "status": _status(node),
        "leftOpen": left_open(node.metadata.annotations),
        "type": labels.get(_TYPE, ""),
        "zone": labels.get(_ZONE, ""),
        "address": _address(node),
        "price": node.metadata.annotations.get(_PRICE, ""),
        "resources": resources,
    }


def _address(node: views.Node) -> str:
    return next((one.address for one in node.status.addresses if one.type == "InternalIP"), "")


def _status(node: views.Node) -> str:
    from unisono.control.health.node_health import SUSPECT
    from unisono.control.names import QUARANTINE
    from unisono.kinds.device_faults import left_open

    states = ["Ready" if node.conditions.is_true("Ready") else "NotReady"]
    if node.spec.unschedulable:
        states.append("SchedulingDisabled")
    for taint in node.spec.taints:
        if taint.key in (QUARANTINE, SUSPECT):
            state = "Quarantine" if taint.key == QUARANTINE else "Suspect"
            states.append(f"{state}:{taint.value or 'unknown'}")
    if left_open(node.metadata.annotations):
        states.append("NotQuarantined")
    return ",".join(states)


def notes(rows: Iterable[Json]) -> list[str]:
    """Say which nodes are broken and get pods all the same."""
    return [
        f"{one['name']} is broken ({one['leftOpen']}) and still gets pods, as the last choice: as"
        " many nodes of its instance type are in quarantine as may be. `kubectl cordon"
        f" {one['name']}` keeps pods away."
        for one in rows
        if one["leftOpen"]
    ]


def _requests(pod: views.Pod) -> dict[str, int]:
    """Return what a pod takes of its node: containers together, or its largest init container."""
    together: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in _requests_of(container).items():
            together[name] = together.get(name, 0) + amount
    for container in pod.spec.init_containers:
        for name, amount in _requests_of(container).items():
            before = together.get(name, 0)
            is_added = container.is_sidecar
            together[name] = before + amount if is_added else max(before, amount)
    return together


def _requests_of(container: views.Container) -> dict[str, int]:
    from unisono.kinds.quantity import Quantity

    wanted = {**container.resources.limits, **container.resources.requests}
    return {name: Quantity.from_raw(amount).amount(name) for name, amount in wanted.items()}


def _cell(resources: Json, name: str) -> str:
    """Write what is used and what there is; GPUs of every maker together."""
    from unisono.engine.model.resources import is_gpu

    if name == "gpus":
        gpus = [one for resource, one in resources.items() if is_gpu(resource)]
        used = sum(int(one["used"]) for one in gpus)
        return f"{used}/{sum(int(one['allocatable']) for one in gpus)}" if gpus else ""
    one = resources.get(name)
    if one is None:
        return ""
    return f"{_whole(one['used'], name)}/{_whole(one['allocatable'], name)}"


def _whole(written: str, name: str) -> str:
    """Write whole cores and gibibytes."""
    from unisono.kinds.quantity import Quantity

    units = Quantity.from_raw(written).units
    return f"{units // 2**30}Gi" if name == "memory" else str(units)


# ---- machines that are bought --------------------------------------------------------------------

_CLAIM_COLUMNS = {
    "CLAIM": "name",
    "POOL": "pool",
    "TYPE": "type",
    "ZONE": "zone",
    "SOLD AS": "capacityType",
    "US$/H": "price",
    "STATE": "state",
    "HELD FOR": "heldFor",
}


async def read_claims(client: Client) -> list[Json]:
    """Return the machines that are bought, or about to be; none where there is no such kind."""
    from unisono.control.names import NODE_CLAIM
    from unisono.kube.errors import Forbidden, NotFound, UnknownKind

    try:
        claims = (await client.list(NODE_CLAIM)).items
    except (Forbidden, NotFound, UnknownKind):
        return []
    return [_claim_row(one) for one in sorted(claims, key=lambda one: views.Object(one).name)]


def claim_sheet(claims: Sequence[Json]) -> Sheet:
    """Return a sheet of machines that are not nodes yet."""
    rows = [[one[word] for word in _CLAIM_COLUMNS.values()] for one in claims]
    return Sheet("claims", tuple(_CLAIM_COLUMNS), rows, list(claims))


def price_and_holder(node: Json, bought: Mapping[str, Json]) -> tuple[str, str]:
    """Return the hourly price of a node, and the workload that it is kept for."""
    own = bought.get(node["name"], {})
    return str(own.get("price", node["price"])), str(own.get("heldFor", ""))


def _claim_row(claim: Json) -> Json:
    from unisono.provision import keys
    from unisono.provision.claims import node_name, pool_name, state_of, wanted_of

    metadata = views.Object(claim).metadata
    return {
        "name": metadata.name,
        "node": node_name(claim),
        "pool": pool_name(claim),
        "type": wanted_of(claim, keys.INSTANCE_TYPE),
        "zone": wanted_of(claim, keys.ZONE),
        "capacityType": wanted_of(claim, keys.CAPACITY_TYPE),
        "price": metadata.annotations.get(keys.PRICE, ""),
        "state": state_of(claim),
        "heldFor": metadata.annotations.get(keys.HELD_FOR, ""),
    }
