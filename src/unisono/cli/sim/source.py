"""Options that say which trace to take and how to read it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.sim.outcome import Capacity
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


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--format", default="", help="swf, openb, philly, csv or jsonl")
    parser.add_argument("--map", default="", metavar="FIELD=COLUMN,…", help="columns of a CSV")
    parser.add_argument("--procs", type=int, default=0, metavar="N", help="size of the machine")
    parser.add_argument("--skip-bad", action="store_true", help="count bad lines, do not stop")
    parser.add_argument("--seed", type=int, help="of a generator, or of --fill")
    parser.add_argument(
        "--fill", action="store_true", help="pods of an openb list until the cluster is full"
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
