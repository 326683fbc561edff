"""Stories about quota and preemption, told on the example manifests alone.

Every step reads manifests exactly as `unisono decide` does and lets the engine decide; the tables
show quota and usage afterwards. Nothing is installed, started or left behind.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from unisono.cli.decide import decision, render
from unisono.cli.tables import paragraph, table
from unisono.engine.cluster import new_cluster
from unisono.engine.dry_run import dry_run
from unisono.engine.model.errors import UnisonoError
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.changes import Change, WorkloadGone, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.quota_tree import available
from unisono.engine.state.snapshots import as_changes
from unisono.kinds.quantity import format_amount
from unisono.kinds.snapshot.build import read_world


@dataclass(frozen=True, slots=True)
class Step:
    """Something happens: manifests are applied, or workloads end."""

    text: str
    apply: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """A few steps on one folder of examples."""

    title: str
    folder: str
    steps: tuple[Step, ...]


STORIES = {
    "borrowing": Story(
        "Two teams share CPUs; production preempts development",
        "seed-003-preemption",
        (
            Step(
                "Team B starts a development cluster. Its queue has no quota: it borrows 6 CPUs.",
                apply=("00-kueue.yaml", "10-team-b-ray-cluster-dev.yaml"),
            ),
            Step(
                "Team A submits production: 10 CPUs, and 4 are free. Its queue may preempt lower "
                "priorities while borrowing.",
                apply=("20-team-a-ray-cluster-prod.yaml",),
            ),
            Step(
                "Production is deleted. Development is admitted again.",
                gone=("team-a/raycluster-raycluster-prod",),
            ),
        ),
    ),
    "pool": Story(
        "One hundred GPUs, shared by two kinds of nodes",
        "seed-000-gang-quota",
        (
            Step(
                "The queue has 100 GPUs for both flavors together. A first job takes 64 of them, a "
                "second one 32 on the nodes with EFA.",
                apply=(
                    "00-resource-flavors.yaml",
                    "10-cluster-queue.yaml",
                    "20-local-queue.yaml",
                    "40-train-jobs.yaml",
                ),
            ),
            Step(
                "A third job asks for 8 GPUs, and 4 are left. None of its pods starts.",
                apply=("50-train-job-that-waits.yaml",),
            ),
            Step(
                "The second job ends, and the third one starts.",
                gone=("default/trainjob-second",),
            ),
        ),
    ),
}


def tell(name: str) -> None:
    """Tell one story."""
    _tell(STORIES[name], examples_folder())


def examples_folder() -> Path:
    """Find the examples: inside an installed package, or beside the sources."""
    here = Path(__file__).resolve()
    for folder in (here.parents[2] / "examples", here.parents[4] / "examples"):
        if folder.is_dir():
            return folder
    raise UnisonoError("the example manifests are not there; run the demo from a checkout")


def _tell(story: Story, examples: Path) -> None:
    title = f"{story.title}  (examples/{story.folder})"
    sys.stdout.write(f"{title}\n{'=' * len(title)}\n")
    state = new_cluster()
    files: list[tuple[str, bytes]] = []
    for number, step in enumerate(story.steps, start=1):
        now = Instant(number * 60_000)  # a story has its own clock, so that it always ends alike
        applied = [(name, (examples / story.folder / name).read_bytes()) for name in step.apply]
        world = read_world([*files, *applied], now=now)
        for change in as_changes(world.snapshot):
            # The manifests show every workload as it was submitted; keep what became of it.
            if not _is_known(state, change):
                state.apply(change)
        for key in step.gone:
            state.apply(WorkloadGone(WorkloadKey(key)))
        fresh = {name for name, _ in applied}
        plans = dry_run(state, now)
        warnings = [warning for warning in world.warnings if warning.file in fresh]
        sys.stdout.write(f"\n{number}. {paragraph(step.text, indent='   ').lstrip()}\n\n")
        sys.stdout.write(render(decision(state, plans, warnings, now=now), now))
        sys.stdout.write(f"\n{usage_table(state)}\n")
        files.extend(applied)


def _is_known(state: ClusterState, change: Change) -> bool:
    if not isinstance(change, WorkloadWaits):
        return False
    key = change.workload.key
    return key in state.waiting or key in state.running


# ---- quota and usage -----------------------------------------------------------------------------


def usage_table(state: ClusterState) -> str:
    """Return one row a queue and flavor-resource that has quota or usage."""
    rows = []
    for name in sorted(state.queues):
        node = state.queues[name].node
        for flavor_resource, cell in sorted(node.cells.items()):
            if not cell.nominal and not cell.usage and available(cell) <= 0:
                continue
            borrowed = max(0, cell.usage - cell.nominal)
            numbers = (cell.nominal, cell.usage, borrowed, max(0, available(cell)))
            shown = [format_amount(number, flavor_resource.resource) for number in numbers]
            cohort = node.parent.name if node.parent else None
            rows.append([name, cohort, _label(flavor_resource), *shown])
    headings = ["QUEUE", "COHORT", "FLAVOR/RESOURCE", "NOMINAL", "USED", "BORROWED", "FREE"]
    return table(headings, rows)


def _label(flavor_resource: FlavorResource) -> str:
    return f"{flavor_resource.flavor.removeprefix('pool:')}/{flavor_resource.resource}"
