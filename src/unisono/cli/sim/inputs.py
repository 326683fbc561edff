"""What a simulation takes in: a trace, nodes, machines that it may buy, and policies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.cli.help_format import Options
from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.engine.model.names import NodeName
    from unisono.engine.model.node import Node
    from unisono.engine.model.provisioning import Offerings
    from unisono.provision.simulated_cloud import Cloud
    from unisono.sim.outcome import Capacity
    from unisono.sim.provisioning import ProvisioningRules
    from unisono.sim.setup import Rules
    from unisono.sim.trace import Trace

TRACES = """\
A TRACE is a file or a generator:
  KTH-SP2.swf.gz                   Standard Workload Format (gzip by its suffix)
  openb_pod_list_default.csv       pods of Alibaba's openb clusters
  philly_jobs.csv.gz               jobs of Microsoft's Philly cluster
  jobs.csv --map spot              any CSV; the map says what its columns mean
  may.jsonl                        our own form
  lublin:jobs=10000,processors=256,load=0.8,seed=1
  gpu:jobs=10000,gpus=8000,load=0.9,teams=4,seed=1
  kueue-perf:cohorts=5,queues=6,share=1
"""


def add_reading(parser: Options) -> None:
    """Add the options that say how to read a trace."""
    parser.add_argument(
        "--format",
        default="",
        help="swf, openb, philly, csv or jsonl (default: by the file's name)",
    )
    parser.add_argument("--map", default="", metavar="FIELD=COLUMN,…", help="columns of a CSV")
    parser.add_argument(
        "--procs",
        type=int,
        default=0,
        metavar="N",
        help="the number of processors of the traced machine",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="skip lines that cannot be read, and count them",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="the seed of a generator, or of --fill"
    )
    parser.add_argument(
        "--fill", action="store_true", help="repeat pods of an openb list until the cluster is full"
    )
    parser.add_argument(
        "--shake", type=int, metavar="SEED", help="move every arrival by up to 30 s, at random"
    )


def traces_of(
    text: str, arguments: argparse.Namespace, count: int, capacity: Capacity | None = None
) -> Iterator[tuple[int, Trace]]:
    """Yield so many traces with their seeds: a generator's with several, or a file's, shaken.

    A list that fills a cluster is shuffled by each seed.
    """
    from unisono.sim.sources import is_generated
    from unisono.sim.trace import perturbed_replicas

    first = 1 if arguments.seed is None else arguments.seed
    if not is_generated(text) and not arguments.fill:
        yield from perturbed_replicas(trace_of(text, arguments), seed=first, count=count)
        return
    for seed in range(first, first + count):
        arguments.seed = seed
        yield seed, trace_of(text, arguments, capacity)


def trace_of(text: str, arguments: argparse.Namespace, capacity: Capacity | None = None) -> Trace:
    """Return the trace that was asked for; to fill a cluster it needs to know how large that is."""
    from unisono.sim.sources import Reading, open_trace
    from unisono.sim.traces.mapped import parse_map

    how = Reading(
        format=arguments.format,
        map=parse_map(arguments.map),
        processors=arguments.procs,
        skip_bad=arguments.skip_bad,
        fill_gpu_milli=_gpu_milli(capacity) if arguments.fill else 0,
    )
    trace = open_trace(text, how, seed=arguments.seed)
    if arguments.shake is None:
        return trace
    from unisono.sim.trace import perturbed

    return perturbed(trace, seed=arguments.shake)


def _gpu_milli(capacity: Capacity | None) -> int:
    if capacity is None or not capacity.gpu_milli:
        raise InvalidManifest("--fill", "needs a cluster with GPUs: --cluster SHAPE|FILE")
    return capacity.gpu_milli


# ---- nodes ---------------------------------------------------------------------------------------

_LONG_AGO = "1970-01-01T00:00:00Z"  # nodes of a simulation were always there


def cluster_nodes(texts: Sequence[str]) -> tuple[Node, ...]:
    """Return the nodes that shapes and files name, all together."""
    return tuple(node for text in texts for node in _nodes(text))


def _nodes(text: str) -> tuple[Node, ...]:
    import msgspec

    from unisono.provision.catalog.nodes import BadShape, nodes_of, parse_shape
    from unisono.sim.clusters import manifest_nodes, read_cluster

    path = Path(text)
    if path.is_file() or path.suffix in (".yaml", ".yml", ".json", ".csv", ".gz"):
        return read_cluster(path)
    try:
        manifests = list(nodes_of(parse_shape(text), now=_LONG_AGO))
    except BadShape as error:
        raise InvalidManifest("--nodes (--cluster)", str(error)) from error
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    return manifest_nodes([(text, msgspec.json.encode(listed))])


# ---- policies ------------------------------------------------------------------------------------

POLICY_WORDS = """\
A POLICY is a name (`unisono sim run --policy list` shows them) or a file: a Policy, a
SchedulingPolicy or a Kueue Configuration, as `unisono up --policy` reads them. A file may also hold
ClusterQueues, LocalQueues, Cohorts, ResourceFlavors and Topologies; jobs then go to the queue that
is called like theirs in the trace. Otherwise all of them share one queue that owns the cluster.
"""
_SUFFIXES = (".yaml", ".yml", ".json")


def policies_of(names: Sequence[str]) -> list[Rules]:
    """Return the rules of names and files, in their order, each once."""
    found: dict[str, Rules] = {}
    for name in dict.fromkeys(names):
        rules = _policy(name)
        if rules.name in found:
            raise InvalidManifest("--policy", f'two policies are called "{rules.name}"')
        found[rules.name] = rules
    if not found:
        raise InvalidManifest("--policy", "names no policy")
    return [*found.values()]


def _policy(name: str) -> Rules:
    from unisono.sim.setup import POLICIES

    if name in POLICIES:
        return POLICIES[name]
    path = Path(name)
    if path.suffix in _SUFFIXES or path.is_dir():
        return _from_file(path)
    known = ", ".join(POLICIES)
    raise InvalidManifest("--policy", f'there is no policy "{name}"; there are {known}, or a file')


def _from_file(path: Path) -> Rules:
    from unisono.engine.model.names import Instant
    from unisono.kinds.snapshot.build import read_world
    from unisono.runtime.manifest_files import files_of
    from unisono.sim.setup import Rules

    world = read_world(files_of(str(path)), now=Instant(0))
    if world.problems:
        raise InvalidManifest("", "\n".join(problem.line() for problem in world.problems))
    for warning in world.warnings:
        print(f"unisono: warning: {warning.line()}", file=sys.stderr)
    read = world.snapshot
    if read.nodes or read.waiting or read.admitted_workloads or world.unmanaged:
        message = f"{path} has nodes or jobs; nodes come from --nodes, and jobs from the trace"
        raise InvalidManifest("--policy", message)
    layout = read if read.queues else None
    return Rules(path.stem, f"as {path.name} says", read.policy, layout=layout)


# ---- machines that a simulation may buy ----------------------------------------------------------

# What bought machines are called in tables, beside the policy.
BOUGHT = "bought"


def add_renting(parser: Options) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "--pools",
        type=Path,
        metavar="FILE",
        help="buy machines as these NodePools say (with the ConfigMap unisono-cloud: stock, "
        "delays), and compare with the cluster of --nodes, if there is one",
    )
    parser.add_argument(
        "--base",
        action="append",
        default=[],
        metavar="WHERE",
        help="with --pools: nodes that are always there, beside the bought ones",
    )


def provisioning_rules_of(path: Path) -> ProvisioningRules:
    """Return what can be bought by a file, how soon, and for how long machines stay."""
    from unisono.cli.up import pools_of_file
    from unisono.kinds.decode import decode
    from unisono.kinds.karpenter import NodePool, pool_of
    from unisono.provision.catalog.offers import (
        merged,
        offerings_of,
        regions_of,
        usable_overlays,
        with_devices,
    )
    from unisono.provision.keys import CLOUD
    from unisono.provision.occupancy import stays_for
    from unisono.provision.simulated_cloud import cloud_of
    from unisono.sim.provisioning import ProvisioningRules

    documents = pools_of_file(path)
    written = [one for one in documents if one["kind"] == "NodePool"]
    config = next((one for one in documents if one["metadata"].get("name") == CLOUD), None)
    cloud = cloud_of(config)
    pools = []
    for one in written:
        made, problems = decode(NodePool, one, ignore_unknown=True)
        if made is None:
            raise InvalidManifest("--pools", problems[0].message)
        pools.append(pool_of(made))
    regions = [cloud.region] if cloud.region else regions_of(pools, ())
    overlays = usable_overlays(one for one in documents if one["kind"] == "NodeOverlay")
    types = with_devices(merged({one.name: one for one in cloud.instance_types}), overlays)
    offerings = offerings_of(pools, regions, types=types, overlays=overlays)
    if offerings is None:
        raise InvalidManifest("--pools", f"{path} has no NodePool")
    return ProvisioningRules(
        offerings=_for_sale(offerings, cloud),
        launch_s=lambda name: cloud.seconds("api", name),
        ready_s=lambda name: sum(cloud.seconds(step, name) for step in _STEPS),
        idle_s={one["metadata"]["name"]: stays_for(_NO_CLAIM, one, reuse=0.0) for one in written},
    )


_STEPS = ("api", "boot", "plugin", "startup")
_NO_CLAIM: dict[str, Any] = {"metadata": {}}


def _for_sale(offerings: Offerings, cloud: Cloud) -> Offerings:
    """Leave out what no pool would buy, and say how many there are of the rest."""
    import msgspec

    from unisono.engine.provisioning.catalogue import Catalogue

    buyable = Catalogue(offerings).offerings
    if not buyable:
        raise InvalidManifest("--pools", "no machine type meets what the NodePools require")
    sold = {(one.offer.machine, one.offer.zone, one.offer.capacity_type) for one in buyable}
    offers = tuple(
        msgspec.structs.replace(one, stock=cloud.left(one.machine, one.zone, one.capacity_type))
        for one in offerings.offers
        if (one.machine, one.zone, one.capacity_type) in sold
    )
    names = {one.machine for one in offers}
    machines = tuple(one for one in offerings.machines if one.name in names)
    steps = sum(cloud.seconds(step, "typical") for step in _STEPS)
    replace = msgspec.structs.replace
    return replace(offerings, machines=machines, offers=offers, soon_ms=int(steps * 1000))


def prices_of(nodes: Sequence[Node]) -> Mapping[NodeName, int]:
    """Return what nodes cost an hour: the on-demand price of their type, where it is known."""
    from unisono.engine.model.provisioning import INSTANCE_TYPE, MICRO, ZONE
    from unisono.provision.catalog.instance_types import default_zone, machine_types, region_of

    found: dict[NodeName, int] = {}
    for node in nodes:
        labels = dict(node.labels)
        machine = machine_types().get(labels.get(INSTANCE_TYPE, ""))
        if machine is None:
            continue
        region = region_of(labels.get(ZONE) or default_zone(machine))
        price = machine.price.get(region)
        asked = None if price is None else price.on_demand or price.estimate_on_demand
        if asked is not None:
            found[node.name] = round(asked * MICRO)
    return found
