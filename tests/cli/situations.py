"""Fourteen situations in which a user asks `unisono why`, each on a cluster of its own.

A situation is a short story that ends with the name of the job that is asked about. The clock is
the test's, so the whole text of an answer is the same every time; it is kept in `why/NAME.txt`, to
be read aloud. `python -m tests.cli.situations` writes these files anew: review the diff like code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.support.control_objects import KUEUE, job, node, priority, queue
from tests.support.control_world import World
from tests.support.provisioning_world import claims, cloud, pool, told
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.cli.why.text import text
from unisono.control import names

Situation = Callable[[World], Awaitable[str]]

FOLDER = Path(__file__).with_name("why")
_RACK = "example.com/rack"
_LOWER = {"withinClusterQueue": "LowerPriority"}


def words(situation: Situation) -> str:
    """Return what `unisono why` says at the end of a situation."""
    said: list[str] = []

    async def story(world: World) -> None:
        name = await situation(world)
        found = answer(await gather(world.client, world.get(names.JOB, name)))
        said.append(text(found, world.clock.now()))

    told(story)
    return said[0]


async def quota_exhausted(world: World) -> str:
    """The queue has 16 GPUs, and others use 12 of them."""
    await world.create(*(node(f"n{number}") for number in range(1, 5)), *queue(gpus=16))
    await world.create(job("others", pods=3, gpus=4, seconds=7200))
    await world.settle()
    await world.create(job("train", pods=1, gpus=8))
    await world.pass_time(60)
    return "train"


async def preemption(world: World) -> str:
    """A job of lower priority was told to leave and saves its work first."""
    await world.create(node("n1"), node("n2"), *queue(preemption=_LOWER), priority("urgent", 100))
    slow = job("sweep", seconds=7200, says={"stop-seconds": "25"})
    slow["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60
    await world.create(slow)
    await world.settle()
    await world.create(job("train", priority_class="urgent"))
    await world.pass_time(10)
    return "train"


async def gang_does_not_fit(world: World) -> str:
    """There is quota for four nodes, and three are free."""
    await world.create(*(node(f"n{number}") for number in range(1, 5)), *queue(gpus=64))
    await world.create(job("notebook", pods=1, gpus=2, seconds=7200))
    await world.settle()
    await world.create(job("train", pods=4))
    await world.pass_time(60)
    return "train"


async def two_flavors(world: World) -> str:
    """Another job holds 4 of 16 A100s; the T4s are free, and too few."""
    for name in ("a100-1", "a100-2", "t4-1"):
        made = node(name)
        made["metadata"]["labels"]["type"] = name.partition("-")[0]
        await world.create(made)
    _, cluster_queue, local = queue()
    flavors = []
    for name, quota in (("a100", "16"), ("t4", "8")):
        flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}}
        await world.create({**flavor, "spec": {"nodeLabels": {"type": name}}})
        cell = {"name": "nvidia.com/gpu", "nominalQuota": quota}
        flavors.append({"name": name, "resources": [cell]})
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}
    cluster_queue["spec"]["resourceGroups"] = [group]
    notebook = job("notebook", pods=1, gpus=4, seconds=7200)
    notebook["metadata"]["annotations"] = {"unisono.dev/time-limit": "2:00:00"}
    await world.create(cluster_queue, local, notebook)
    await world.settle()
    await world.create(job("train"))
    await world.pass_time(60)
    return "train"


async def larger_than_every_node(world: World) -> str:
    """A pod asks for 16 GPUs, nodes have 8, and the queue is full."""
    await world.create(node("n1"), node("n2"), *queue(gpus=16))
    await world.create(job("others", pods=2, gpus=8, seconds=7200))
    await world.settle()
    await world.create(job("train", pods=1, gpus=16))
    await world.pass_time(60)
    return "train"


async def topology(world: World) -> str:
    """Four pods want one rack, and the racks have three nodes each."""
    for number in range(6):
        made = node(f"n{number + 1}")
        made["metadata"]["labels"][_RACK] = f"r{number // 3 + 1}"
        await world.create(made)
    levels = [{"nodeLabel": _RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    racks = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "racks"}}
    flavor, *rest = queue(gpus=64)
    flavor["spec"] = {"topologyName": "racks", "nodeLabels": {"kubernetes.io/os": "linux"}}
    await world.create({**racks, "spec": {"levels": levels}}, flavor, *rest)
    for name in [f"n{number + 1}" for number in range(6)]:
        patch = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
        await world.client.patch(names.NODE, name, "", patch)
    wants = job("train", pods=4)
    notes = wants["spec"]["template"]["metadata"]["annotations"]
    notes["kueue.x-k8s.io/podset-required-topology"] = _RACK
    await world.create(wants)
    await world.pass_time(60)
    return "train"


async def turn(world: World) -> str:
    """A larger job of higher priority is next, and the queue is strict."""
    flavor, cluster_queue, local = queue(gpus=16)
    cluster_queue["spec"]["queueingStrategy"] = "StrictFIFO"
    await world.create(node("n1"), node("n2"), flavor, cluster_queue, local)
    await world.create(priority("urgent", 100), job("others", pods=1, seconds=7200))
    await world.settle()
    await world.create(job("large", priority_class="urgent"), job("train", pods=1))
    await world.pass_time(60)
    return "train"


async def dependency(world: World) -> str:
    """The data is still being prepared, for an hour at most."""
    prepare = job("prepare", pods=1, seconds=3600)
    prepare["metadata"]["annotations"] = {"unisono.dev/time-limit": "1:00:00"}
    await world.create(node("n1"), node("n2"), *queue(), prepare)
    await world.settle()
    after = job("train", pods=1)
    after["metadata"]["annotations"] = {"unisono.dev/depends-on": "afterok:prepare"}
    await world.create(after)
    await world.pass_time(60)
    return "train"


async def begin(world: World) -> str:
    """It is not to begin before tonight."""
    later = job("train", pods=1)
    later["metadata"]["annotations"] = {"unisono.dev/begin": "now+6hours"}
    await world.create(node("n1"), *queue(), later)
    await world.pass_time(60)
    return "train"


async def too_large(world: World) -> str:
    """It asks for more than its queue may ever have."""
    await world.create(node("n1"), node("n2"), node("n3"), *queue(gpus=16))
    await world.create(job("other", pods=1, gpus=8, seconds=3600))
    await world.settle()
    await world.create(job("train", pods=3, gpus=8))
    await world.pass_time(60)
    return "train"


async def hold(world: World) -> str:
    """An administrator holds it back."""
    held = job("train", pods=1)
    held["metadata"]["annotations"] = {"unisono.dev/hold": "admin"}
    await world.create(node("n1"), *queue(), held)
    await world.pass_time(60)
    return "train"


async def provisioning(world: World) -> str:
    """Two machines are bought for it and start."""
    await world.create(*queue(gpus=64), pool())
    await world.create(job("train"))
    await world.pass_time(20)
    assert len(claims(world)) == 2
    return "train"


async def stock_out(world: World) -> str:
    """The cloud has one machine left in every zone, and two are needed."""
    await world.create(cloud(stock={"g6e.48xlarge": 1}), *queue(gpus=64), pool())
    await world.create(job("train"))
    await world.pass_time(30)
    assert not claims(world)
    return "train"


async def node_fault(world: World) -> str:
    """One of its nodes went away, and there is no other."""
    await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=7200))
    await world.settle()
    lost = {"conditions": [{**node("n2")["status"]["conditions"][0], "status": "False"}]}
    await world.set_status(names.NODE, "n2", lost)
    await world.pass_time(60)
    return "train"


SITUATIONS: tuple[Situation, ...] = (
    quota_exhausted,
    preemption,
    gang_does_not_fit,
    two_flavors,
    larger_than_every_node,
    topology,
    turn,
    dependency,
    begin,
    too_large,
    hold,
    provisioning,
    stock_out,
    node_fault,
)


def name_of(situation: Situation) -> str:
    """Return the name of a situation, as its file has it."""
    return str(getattr(situation, "__name__", "")).replace("_", "-")


def main() -> None:
    """Write what is said now into the files."""
    for situation in SITUATIONS:
        path = FOLDER / f"{name_of(situation)}.txt"
        path.write_text(words(situation), encoding="utf-8")
        print(path.name)


if __name__ == "__main__":
    main()
