"""`unisono queues`, `workloads` and `nodes`: rows, forms, and what is printed while watching."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.cli import listing, nodes, queues, workloads
from unisono.cli.listing import Reads, Sheet
from unisono.kube.form import Json


def rows(reads: Reads, **given: Any) -> list[list[list[str]]]:
    """Play a small story and return the cells of every sheet: one job runs, one waits."""
    options = {"everywhere": False, "namespace": "default", "queue": "", **given}

    async def run() -> list[list[list[str]]]:
        world: World = simulated_world()
        async with world.running():
            await world.create(node("n1"), node("n2"), *queue())
            await world.create(job("runs", pods=1, seconds=500), job("waits"))
            await world.pass_time(5)
            sheets = await reads(world.client, argparse.Namespace(**options))
            return [[[str(cell) for cell in row] for row in sheet.rows] for sheet in sheets]

    return asyncio.run(run())


def test_queues_tell_counts_and_usage() -> None:
    cluster, local = rows(queues.read)
    assert cluster == [["cq", "", "1", "1", "gpu 8/16", "Ready"]]
    assert local == [["default", "lq-cq", "cq", "1", "1", "Ready"]]


def test_a_queue_of_the_older_version_is_in_its_cohort() -> None:
    queue = {"metadata": {"name": "cq"}, "spec": {"cohort": "research"}}
    assert queues.cluster_queue(queue)["cohort"] == "research"


def test_workloads_are_listed_with_running_ones_first() -> None:
    (found,) = rows(workloads.read)
    assert [row[:6] for row in found] == [
        ["job/runs", "lq-cq", "0", "1", "running", ""],
        ["job/waits", "lq-cq", "0", "2", "waiting", "1"],
    ]
    assert found[0][-1] in ("n1", "n2")
    assert found[1][-1] == "starts once job/runs has ended"


@pytest.mark.parametrize(("asked", "count"), [("lq-cq", 2), ("cq", 2)])
def test_workloads_of_one_queue(asked: str, count: int) -> None:
    (found,) = rows(workloads.read, queue=asked, everywhere=True)
    assert len(found) == count
    assert all(row[0] == "default" for row in found)


def test_nodes_tell_what_pods_have_asked_for() -> None:
    (found,) = rows(nodes.read)
    assert sorted(row[4] for row in found) == ["0/8", "8/8"]
    assert [row[0] for row in found] == ["n1", "n2"]
    assert found[0][5:] == ["0/96", "0Gi/512Gi"]


def test_a_pod_counts_with_its_largest_beginner() -> None:
    def container(cpu: str, **more: str) -> Json:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "nodeName": "n1",
        "containers": [container("1"), container("500m")],
        "initContainers": [container("4"), container("2", restartPolicy="Always")],
    }
    (row,) = nodes.listed([node("n1")], [{"metadata": {"name": "p"}, "spec": spec}])
    assert row["resources"]["cpu"] == {"used": "6", "allocatable": "96"}


def test_the_commands_print_tables_and_forms(shell: Shell) -> None:
    name = f"q-{shell.namespace}"
    _, cluster_queue, local_queue = queue(name)
    local_queue["metadata"]["namespace"] = shell.namespace
    shell.type("apply", "-f", shell.file(cluster_queue, local_queue))
    lines = shell.type("queues").ok().splitlines()
    assert lines[0].split() == ["CLUSTERQUEUE", "COHORT", "PENDING", "ADMITTED", "USED", "STATE"]
    assert lines[-1].split()[:3] == [shell.namespace, f"lq-{name}", name]
    assert f'"name": "{name}"' in shell.type("queues", "-o", "json").ok()
    assert "workloads: []" in shell.type("workloads", "-o", "yaml").ok()
    assert shell.type("workloads").err == "unisono: nothing found\n"
    assert shell.type("queues", "-w", "-o", "json").code == 2


def test_watching_prints_rows_that_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = iter([["waits", "waits"], ["waits", "waits"], ["waits", "runs"]])

    async def reads(client: Any, arguments: argparse.Namespace) -> list[Sheet]:
        try:
            found = next(states)
        except StopIteration:
            raise KeyboardInterrupt from None
        values = [{"name": str(index), "state": word} for index, word in enumerate(found)]
        cells = [(one["name"], one["state"]) for one in values]
        return [Sheet("things", ("NAME", "STATE"), cells, values)]

    async def at_once() -> None:
        pass

    monkeypatch.setattr(listing, "_pause", at_once)
    arguments: Any = argparse.Namespace(output="table", watch=True)
    no_client: Any = None
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(listing.show(no_client, arguments, reads))
    assert capsys.readouterr().out.split() == [
        "NAME",
        "STATE",
        "0",
        "waits",
        "1",
        "waits",
        "1",
        "runs",
    ]


def test_nodes_are_added_after_those_that_are_there(shell: Shell) -> None:
    first = shell.type("nodes", "--add", "2x{gpu=8,name=added}").ok()
    assert first == "node/added-1 created\nnode/added-2 created\n"
    assert shell.type("nodes", "--add", "1x{gpu=8,name=added}").ok() == "node/added-3 created\n"
    wrong = shell.type("nodes", "--add", "two")
    assert (wrong.code, "COUNTxTYPE" in wrong.err) == (2, True)
