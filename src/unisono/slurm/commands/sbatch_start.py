"""When a job would start: `sbatch --test-only`, and the first of several partitions."""

from __future__ import annotations

from typing import Any

from unisono.slurm.client import Quick
from unisono.slurm.commands.context import Around, Outcome, Refused, Start
from unisono.slurm.commands.sbatch import Wish, prepare
from unisono.slurm.host_list import fold
from unisono.slurm.labels import DEPENDS_ON
from unisono.slurm.sbatch.arrays import Array, for_task
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.site import LAST_ID, MAP, Rules, rules_of
from unisono.slurm.times import shown

Json = dict[str, Any]


def tested(api: Quick, wish: Wish, around: Around) -> Outcome:
    """Say when a job would start; nothing is stored."""
    stored = api.find(MAP)
    last = int(((stored or {}).get("metadata") or {}).get("annotations", {}).get(LAST_ID) or 0)
    try:
        wish, start = first_to_start(api, wish, around, rules_of(stored), last + 1)
        made, job, _, _ = prepare(api, wish, around, rules_of(stored), last + 1)
    except BadRequest as trouble:
        raise Refused(f"allocation failure: {trouble}") from None
    if not start.at:
        raise Refused(f"allocation failure: {start.why}")
    cpus = sum(group.cpus * group.nodes for group in job.layout.groups)
    nodes = f" on nodes {fold(start.nodes)}" if start.nodes else ""
    partition = made["spec"]["options"].get("partition") or "default"
    text = (
        f"sbatch: Job {last + 1} to start at {shown(start.at)} using {cpus} processors{nodes}"
        f" in partition {partition}\n"
    )
    return Outcome("", text)


def first_to_start(
    api: Quick, wish: Wish, around: Around, rules: Rules, identity: int
) -> tuple[Wish, Start]:
    """Return a wish for that one of its partitions where it starts first, and when that is."""
    found: list[tuple[float, Wish, Start]] = []
    trouble: BadRequest | None = None
    for one in _by_partition(wish):
        try:
            made, job, _, _ = prepare(api, one, around, rules, identity)
        except BadRequest as refused:
            trouble = trouble or refused
            continue
        start = around.dry_run(api, _as_one_job(made, job.array), around.now)
        found.append((start.at or float("inf"), one, start))
    if not found:
        assert trouble is not None, "there is at least one partition to try"
        raise trouble
    _, chosen, start = min(found, key=lambda each: each[0])  # of equals the first named
    return chosen, start


def _by_partition(wish: Wish) -> list[Wish]:
    names = [one for one in wish.options.get("partition", "").split(",") if one]
    if len(names) < 2:
        return [wish]
    return [wish._replace(options={**wish.options, "partition": name}) for name in names]


def _as_one_job(made: Json, array: Array | None) -> Json:
    """Return the first task of an array, for whoever wants to know when it would start."""
    annotations = made["metadata"]["annotations"]
    if array is not None and DEPENDS_ON in annotations:
        annotations[DEPENDS_ON] = for_task(annotations[DEPENDS_ON], array.at(0))
    made["spec"].pop("array", None)
    return made
