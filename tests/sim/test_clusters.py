"""Where a simulation runs: shapes, inventories, manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulations import published
from unisono.cli.sim.inputs import cluster_nodes
from unisono.engine.model.errors import InvalidManifest
from unisono.sim.clusters import MODEL, capacity_of, read_cluster
from unisono.sim.outcome import Capacity
from unisono.sim.trace import BadTrace

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 16Gi, nvidia.com/gpu: "2"}}
"""


def test_shapes() -> None:
    nodes = cluster_nodes(["3x{cpu=1,memory=1Gi}", "1x{gpu=8,cpu=8,memory=32Gi,name=big}"])
    assert [node.name for node in nodes] == ["node-1", "node-2", "node-3", "big-1"]
    assert capacity_of(nodes) == Capacity(
        nodes=4, cpu=3000 + 8000, memory=3 * 1024 + 32 * 1024, gpu_milli=8000
    )
    (machine,) = cluster_nodes(["1xg6e.48xlarge"])
    assert capacity_of([machine]).gpu_milli == 8000
    assert dict(machine.labels)[MODEL]
    with pytest.raises(InvalidManifest, match="--cluster"):
        cluster_nodes(["4 of them"])


def test_manifests(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(NODE)
    assert capacity_of(cluster_nodes([str(path)])) == Capacity(
        nodes=1, cpu=8000, memory=16 * 1024, gpu_milli=2000
    )
    path.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    with pytest.raises(BadTrace, match="has no nodes"):
        cluster_nodes([str(path)])
    path.write_text(NODE.replace('"8"', '"eight"'))
    with pytest.raises(BadTrace, match="cpu"):
        cluster_nodes([str(path)])


def test_inventories(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,P100\nb,32000,1024,0,\n")
    nodes = read_cluster(path)
    assert capacity_of(nodes) == Capacity(nodes=2, cpu=96_000, memory=263_168, gpu_milli=2000)
    assert [dict(node.labels).get(MODEL) for node in nodes] == ["P100", None]
    path.write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nGPU-series-1,4,192,0\n")
    (node,) = read_cluster(path)
    assert (node.name, dict(node.labels)[MODEL]) == ("spot-node-0", "GPU-series-1")
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadTrace, match="is not a known list of nodes; its columns are a, b"):
        read_cluster(path)


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [
        ("openb/openb_node_list_gpu_node.csv", 1213, 6212),
        ("openb/openb_node_list_all_node.csv", 1523, 6212),
        ("alibaba/spot2026_nodes.csv", 4278, 10_412),
    ],
)
def test_published_inventories(name: str, nodes: int, gpus: int) -> None:
    has = capacity_of(read_cluster(published(name)))
    assert (has.nodes, has.gpu_milli) == (nodes, 1000 * gpus)
