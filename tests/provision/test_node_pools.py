"""What pools say of themselves, and what a cluster says of pools that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.control_world import World
from tests.support.provisioning_world import condition, pool, told
from unisono.cli.main import main
from unisono.control import names


def test_a_pool_that_sells_nothing_says_so_once() -> None:
    async def story(world: World) -> None:
        await world.create(pool(types=("g6e.48xlarg",)))
        await world.settle()
        (note,) = [one for one in world.notes if one.reason == "NoOffers"]
        assert 'did you mean "g6e.48xlarge"' in note.message
        ready = condition(world.get(names.NODE_POOL, "gpu", ""), "Ready")
        assert (ready["status"], ready["observedGeneration"]) == ("True", 1)
        await world.client.patch(names.NODE_POOL, "gpu", "", {"metadata": {"labels": {"a": "b"}}})
        await world.settle()
        assert len([one for one in world.notes if one.reason == "NoOffers"]) == 1

    told(story)


def test_pools_that_cannot_be_are_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "pools.yaml"
    wrong.write_text(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: bad}\n"
        "spec: {weight: 500, template: {spec: {requirements: [], nodeClassRef: "
        "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}}}}\n",
        encoding="utf-8",
    )
    home = tmp_path / "home"
    code = main(["up", "--pools", str(wrong), "--data-dir", str(home), "--metrics-port", "none"])
    assert code == 2
    told_ = capsys.readouterr().err
    assert told_.startswith("unisono: NodePool bad: ")
    assert "spec.weight" in told_
