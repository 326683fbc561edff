"""NodePools that are changed: their nodes are replaced when no pod is on them, and never before."""

from __future__ import annotations

from tests.provision.stories import SEOUL, started
from tests.support.control_objects import job, queue
from tests.support.control_world import World
from tests.support.provisioning_world import claims, condition, nodes, pool, told
from unisono.control import names
from unisono.kube.form import Json
from unisono.provision.claims import HASH, OURS, VERSION, hash_of

LONG = {"consolidateAfter": "2h", "budgets": [{"nodes": "1"}]}


async def edit(world: World, changes: Json) -> None:
    """Change a pool, as its owner would."""
    await world.client.patch(names.NODE_POOL, "gpu", "", changes)


def labelled(team: str) -> Json:
    """Return a change of the template."""
    return {"spec": {"template": {"metadata": {"labels": {"team": team}}}}}


def test_idle_nodes_are_replaced_within_the_budget() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(zones=SEOUL, disruption=LONG))
        await world.create(job("train", pods=2, gpus=8, seconds=30))
        await world.pass_time(200)
        assert len(nodes(world)) == 2
        await edit(world, labelled("red"))
        await world.settle()
        assert len(nodes(world)) == 2
        drifted = [condition(one, "Drifted")["reason"] for one in claims(world)]
        assert drifted == ["NodePoolDrifted", "NodePoolDrifted"]
        await world.pass_time(5)
        assert len(nodes(world)) == 1, "one at a time"
        await world.pass_time(15)
        assert nodes(world) == []

    told(story)


def test_a_running_gang_keeps_its_drifted_nodes_for_itself() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(zones=SEOUL, disruption=LONG))
        await world.create(job("train", pods=2, gpus=4, seconds=600))
        await world.pass_time(120)
        assert started(world, "train")
        before = nodes(world)
        await edit(world, labelled("red"))
        await world.pass_time(60)
        assert started(world, "train")
        assert nodes(world) == before
        await world.create(job("next", pods=1, gpus=4, seconds=900))
        await world.pass_time(120)
        assert started(world, "next")
        (new,) = set(nodes(world)) - set(before)
        assert world.get(names.NODE, new, "")["metadata"]["labels"]["team"] == "red"
        await world.pass_time(500)
        assert nodes(world) == [new], "the others went when their gang had ended"

    told(story)


def test_what_is_changed_back_stays() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(zones=SEOUL, disruption=LONG))
        await world.create(job("train", pods=1, gpus=8, seconds=900))
        await world.pass_time(120)
        await edit(world, labelled("red"))
        await world.pass_time(5)
        (node,) = world.every(names.NODE)
        assert [taint["key"] for taint in node["spec"]["taints"]] == ["karpenter.sh/disrupted"]
        await edit(world, {"spec": {"template": {"metadata": {"labels": {"team": None}}}}})
        await world.pass_time(5)
        (node,) = world.every(names.NODE)
        assert not node["spec"].get("taints")
        assert condition(claims(world)[0], "Drifted")["status"] == ""

    told(story)


def test_requirements_that_a_node_does_not_meet_any_more() -> None:
    async def story(world: World) -> None:
        both = ("ap-northeast-2a", "ap-northeast-2b")
        await world.create(*queue(gpus=32), pool(zones=both, disruption=LONG))
        await world.create(job("train", pods=1, gpus=8, seconds=30))
        await world.pass_time(150)
        (node,) = world.every(names.NODE)
        zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        keep, drop = pool(zones=(zone,)), pool(zones=tuple({*both} - {zone}))
        await edit(world, {"spec": {"template": keep["spec"]["template"]}})
        await world.pass_time(30)
        assert len(nodes(world)) == 1, "it is what the pool wants"
        await edit(world, {"spec": {"template": drop["spec"]["template"]}})
        await world.settle()
        assert condition(claims(world)[0], "Drifted")["reason"] == "RequirementsDrifted"
        await world.pass_time(30)
        assert nodes(world) == []

    told(story)


def test_no_budget_no_change() -> None:
    async def story(world: World) -> None:
        frozen = {"consolidateAfter": "2h", "budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}
        await world.create(*queue(gpus=32), pool(zones=SEOUL, disruption=frozen))
        await world.create(job("train", pods=1, gpus=8, seconds=300))
        await world.pass_time(120)
        await edit(world, labelled("red"))
        await world.pass_time(10)
        (node,) = world.every(names.NODE)
        assert not node["spec"].get("taints"), "others may still come"
        await world.pass_time(600)
        assert len(nodes(world)) == 1

    told(story)


def test_static_pools_get_new_nodes_for_old_ones() -> None:
    async def story(world: World) -> None:
        await world.create(pool(zones=SEOUL, replicas=2))
        await world.pass_time(120)
        await edit(world, labelled("red"))
        await world.pass_time(300)
        labels = [one["metadata"]["labels"].get("team") for one in world.every(names.NODE)]
        assert labels == ["red", "red"]

    told(story)


def test_the_hash_is_of_what_nodes_have_to_share() -> None:
    one = pool(template={"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b"}]})
    other = pool(
        types=("p5.48xlarge",),
        template={"taints": [{"key": "b"}, {"key": "a", "effect": "NoSchedule"}]},
    )
    assert hash_of(one) == hash_of(other), "neither requirements nor the order of taints count"
    assert hash_of(one) != hash_of(pool(template={"expireAfter": "24h"}))


def test_pools_and_claims_carry_it() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(zones=SEOUL))
        await world.create(job("train", pods=1, gpus=8))
        await world.settle()
        marks = world.get(names.NODE_POOL, "gpu", "")["metadata"]["annotations"]
        assert marks[VERSION] == OURS
        assert claims(world)[0]["metadata"]["annotations"][HASH] == marks[HASH]

    told(story)
