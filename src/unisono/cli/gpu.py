"""`unisono gpu`: the simulated GPUs of an embedded cluster; break and repair them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono.cli.connection import asked, verb_parser
from unisono.cli.listing import Sheet, add_form, show
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.digits import whole_number

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json
    from unisono.monitor.gpu_faults import Fault

EXAMPLES = """\
examples:
  unisono gpu
  unisono gpu inject n2 0 --xid 79
  unisono gpu inject n2 '*' --hot 40
  unisono gpu inject n1 3 --memory 0.98
  unisono gpu heal n2 0
  unisono gpu heal n2
"""
_OURS = "unisono:///"
_MOST_DEGREES = 100.0


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("List simulated GPUs; break and repair them.", EXAMPLES)
    add_form(made)
    made.add_argument(
        "verb",
        nargs="?",
        choices=("list", "inject", "heal"),
        default="list",
        help="what to do (default: list)",
    )
    made.add_argument("node", nargs="?", metavar="NODE", help="the node; with list: only its GPUs")
    made.add_argument(
        "gpu", nargs="?", metavar="GPU", help="the GPU's index, or '*' for all of the node"
    )
    faults = made.add_argument_group("faults", "what `inject` breaks; options may be combined")
    faults.add_argument("--xid", type=int, default=0, metavar="N", help="the driver reports XID N")
    faults.add_argument(
        "--ecc", type=int, default=0, metavar="N", help="N uncorrectable memory errors"
    )
    faults.add_argument(
        "--hot", type=float, default=0.0, metavar="C", help="C degrees hotter than normal"
    )
    faults.add_argument(
        "--slow",
        type=float,
        default=1.0,
        metavar="F",
        help="its clock runs at this fraction, such as 0.6",
    )
    faults.add_argument(
        "--memory",
        type=float,
        default=0.0,
        metavar="F",
        help="this fraction of its memory is in use",
    )
    faults.add_argument(
        "--row-remap-failed", action="store_true", help="a broken memory row could not be remapped"
    )
    faults.add_argument("--fall-off", action="store_true", help="it falls off the bus")
    faults.add_argument("--silent", action="store_true", help="its metrics are no longer exported")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Do it."""

    async def work(client: Client, given: argparse.Namespace) -> int:
        if given.verb == "list":
            return await show(client, given, read)
        return await _change(client, given)

    if arguments.verb != "list" and not arguments.node:
        raise InvalidManifest("NODE", f"name the node: unisono gpu {arguments.verb} NODE GPU")
    if arguments.verb == "inject" and arguments.gpu is None:
        raise InvalidManifest("GPU", "name the GPU: its index, or '*' for all of the node")
    return asked(arguments, work)


async def _change(client: Client, given: argparse.Namespace) -> int:
    from unisono.control.names import NODE
    from unisono.monitor.gpu_faults import ANNOTATION, EVERY, faults_of, text_of

    node = await client.get(NODE, given.node)
    if not (node["spec"].get("providerID") or _OURS).startswith(_OURS):
        raise InvalidManifest(
            "NODE", f"{given.node} is a real node; only simulated GPUs can be broken"
        )
    count = _count(node)
    gpu = given.gpu
    if gpu is not None and gpu != EVERY and whole_number(gpu, count - 1) is None:
        raise InvalidManifest("GPU", f"{given.node} has {count} GPUs, 0 to {count - 1}; not {gpu}")
    faults = faults_of(node["metadata"].get("annotations"))
    if given.verb == "heal":
        faults = {} if gpu in (None, EVERY) else {k: v for k, v in faults.items() if k != gpu}
        outcome = "repaired"
    else:
        faults[gpu] = _fault(given)
        outcome = "fault injected"
    await client.patch(
        NODE, given.node, "", {"metadata": {"annotations": {ANNOTATION: text_of(faults)}}}
    )
    which = "all GPUs" if gpu in (None, EVERY) else f"GPU {gpu}"
    print(f"{which} of node {given.node}: {outcome}")
    return 0


def _fault(given: argparse.Namespace) -> Fault:
    from msgspec import structs

    from unisono.monitor.gpu_faults import Fault
    from unisono.runtime.clock import RealClock

    if not 0 < given.slow <= 1:
        raise InvalidManifest("--slow", f"{given.slow} is not between 0 and 1")
    if not 0 <= given.memory <= 1:
        raise InvalidManifest("--memory", f"{given.memory} is not between 0 and 1")
    if not 0 <= given.hot <= _MOST_DEGREES:
        raise InvalidManifest("--hot", f"{given.hot} is not between 0 and {_MOST_DEGREES:g}")
    fault = Fault(
        xid=given.xid,
        ecc=given.ecc,
        hot=given.hot,
        slow=given.slow,
        memory=given.memory,
        row_remap_failed=given.row_remap_failed,
        fallen_off=given.fall_off,
        silent=given.silent,
    )
    if fault == Fault():
        raise InvalidManifest("inject", "say what is wrong: --xid, --hot, --memory, --ecc, …")
    return structs.replace(fault, at=int(RealClock().now()))


async def read(client: Client, arguments: argparse.Namespace) -> list[Sheet]:
    """Return the sheet."""
    from unisono.cli.filters import refuse_unknown
    from unisono.control.names import NODE, POD
    from unisono.kinds import views
    from unisono.monitor.dcgm.assignments import DeviceAssignments
    from unisono.monitor.gpu_faults import fault_at, faults_of
    from unisono.monitor.records import pod_record

    nodes = (await client.list(NODE)).items
    pods = [pod_record(views.Pod(one)) for one in (await client.list(POD)).items]
    refuse_unknown("node", arguments.node or "", (one["metadata"]["name"] for one in nodes))
    holders = DeviceAssignments().give_out(one for one in pods if one.node and not one.is_over)
    found: list[Json] = []
    for node in sorted(nodes, key=lambda one: str(one["metadata"]["name"])):
        metadata = node["metadata"]
        if arguments.node not in (None, metadata["name"]):
            continue
        faults = faults_of(metadata.get("annotations"))
        model = (metadata.get("labels") or {}).get("nvidia.com/gpu.product", "")
        for index in range(_count(node)):
            holder = holders.get((metadata["name"], index))
            pod = f"{holder.pod.namespace}/{holder.pod.name}" if holder is not None else ""
            fault = fault_at(faults, index)
            found.append(
                {
                    "node": metadata["name"],
                    "gpu": index,
                    "model": model,
                    "pod": pod,
                    "fault": " ".join(_words(fault)) if fault is not None else "",
                }
            )
    headings = ("NODE", "GPU", "MODEL", "POD", "FAULT")
    rows = [
        (one["node"], str(one["gpu"]), one["model"], one["pod"] or "-", one["fault"] or "-")
        for one in found
    ]
    return [Sheet("gpus", headings, rows, found)]


def _words(fault: Fault) -> Iterator[str]:
    if fault.xid:
        yield f"xid={fault.xid}"
    if fault.ecc:
        yield f"ecc={fault.ecc}"
    if fault.hot:
        yield f"hot=+{fault.hot:g}"
    if fault.slow < 1:
        yield f"slow={fault.slow:g}"
    if fault.memory:
        yield f"memory={fault.memory:g}"
    for name in ("row_remap_failed", "fallen_off", "silent"):
        if getattr(fault, name):
            yield name.replace("_", "-")


def _count(node: Json) -> int:
    from unisono.kinds import views
    from unisono.monitor.records import node_record

    return node_record(views.Node(node)).gpus
