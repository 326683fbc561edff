"""The screen of both sides."""

from __future__ import annotations

from tests.slurm.bridge.worlds import cluster_view, gang, job, slurm_view
from unisono.cli.slurm.watching import screen
from unisono.slurm.bridge.cluster_view import Pod

NOW = 1_000_000.0


def test_queue_pods_and_nodes_are_on_it_and_what_differs_is_marked() -> None:
    runs = job("7", on=("n1",), gpus_per_node=4, started=NOW - 75, name="a\nb\x1b[2J")
    waits = job("8", reason="JobHeldUser", name="next")
    other = Pod(namespace="ml", name="x", node="n2", gpus=3)
    text = "\n".join(
        screen(slurm_view(runs, waits), cluster_view(gang(runs, "n1"), others=(other,)), NOW)
    )
    queue, pods, nodes = text.split("\n\n")
    assert "Slurm queue (2)" in queue
    assert "\x1b" not in queue  # a name cannot write on the terminal
    assert [line.split()[0] for line in queue.splitlines()[2:]] == ["7", "8"]
    assert " 1:15 " in queue
    assert "(JobHeldUser)" in queue
    assert "Pods of Slurm jobs (1)" in pods
    assert "slurm/p0" in pods
    first, second = nodes.splitlines()[2:]
    assert "4/8" in first
    assert "differs" not in first
    assert "3/8" in second
    assert "differs" in second
