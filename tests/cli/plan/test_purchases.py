"""What `unisono plan` says about machines, of files and on a living cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from tests.support.provisioning_world import pool, told
from unisono.cli.main import main
from unisono.cli.plan.cluster import read_cluster
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.explanation import CannotBuy, GangDoesNotFit
from unisono.engine.model.names import Instant
from unisono.kinds.snapshot.build import read_world

EXAMPLE = Path(__file__).parents[3] / "examples" / "autoscale"
FILES = [str(EXAMPLE / name) for name in ("pools.yaml", "queue.yaml", "train.yaml")]


def test_it_names_what_would_be_bought_and_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-f", *FILES]) == 0
    out = capsys.readouterr().out
    assert "default/trainjob-t5-large starts when its machines are ready" in out
    assert "buys 2 × g6e.48xlarge on-demand in ap-northeast-2a for $74.09/h" in out


def test_scripts_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-f", *FILES, "-o", "json"]) == 0
    (purchase,) = json.loads(capsys.readouterr().out)["purchases"]
    assert purchase["pricePerHour"] == 74.0894
    assert [one["count"] for one in purchase["machines"]] == [2]


def test_a_living_cluster_is_read_with_what_it_has_bought_already() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(gpus=64), pool(limits={"nodes": "3"}))
        await world.create(job("first", pods=2, gpus=8, seconds=3600))
        await world.pass_time(120)
        there = await read_cluster(world.client)
        assert there.offerings is not None
        used: dict[str, int] = dict(there.offerings.pools[0].used)
        assert used["nodes"] == 2
        second = json.dumps(job("second", pods=2, gpus=8)).encode()
        now = Instant(int(world.clock.time * 1000))
        read = read_world([there.file, ("second.json", second)], now=now)
        made = plan(restore(replace(read.snapshot, offerings=there.offerings)), now)
        (wait,) = made.waits
        fact = wait.explanation.blockers[0]
        assert isinstance(fact, CannotBuy)
        assert fact.code == "LimitExceeded"
        assert wait.explanation.workload not in there.workloads

    told(story)


def test_a_recorded_purchase_is_made_again_and_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["decide", "-f", *FILES, "--record", str(tmp_path)]) == 0
    capsys.readouterr()
    (recorded,) = tmp_path.iterdir()
    assert main(["replay", str(recorded)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the same again, byte for byte" in out
    assert "It first buys 2 × g6e.48xlarge on-demand" in out


def test_gangs_in_queues_without_an_object_only_take_room() -> None:
    async def story(world: World) -> None:
        volcano = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {
                "minAvailable": 1,
                "queue": "default",
                "tasks": [
                    {
                        "name": "worker",
                        "replicas": 1,
                        "template": job("x", gpus=8, seconds=3600)["spec"]["template"],
                    }
                ],
            },
        }
        await world.create(node("n1"), node("n2"), *queue(gpus=64), volcano)
        await world.settle()
        there = await read_cluster(world.client)
        assert there.workloads == frozenset()
        now = Instant(int(world.clock.time * 1000))
        second = json.dumps(job("second", pods=2, gpus=8)).encode()
        read = read_world([there.file, ("second.json", second)], now=now)
        assert [problem.line() for problem in read.problems] == []
        (wait,) = plan(restore(read.snapshot), now).waits
        fact = wait.explanation.blockers[0]
        assert isinstance(fact, GangDoesNotFit)
        assert (fact.pods, fact.pods_placeable) == (2, 1), "one node is taken"

    told(story)
