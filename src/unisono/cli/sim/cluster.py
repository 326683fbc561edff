"""Where to simulate: a shape (`4xg6e.48xlarge`), an inventory (CSV), or Node manifests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.node import Node
from unisono.provision.catalog.nodes import BadShape, nodes_of, parse_shape
from unisono.sim.clusters import manifest_nodes, read_cluster

_LONG_AGO = "1970-01-01T00:00:00Z"  # nodes of a simulation were always there


def cluster_nodes(texts: Sequence[str]) -> tuple[Node, ...]:
    """Return the nodes that shapes and files name, all together."""
    return tuple(node for text in texts for node in _nodes(text))


def _nodes(text: str) -> tuple[Node, ...]:
    path = Path(text)
    if path.is_file() or path.suffix in (".yaml", ".yml", ".json", ".csv", ".gz"):
        return read_cluster(path)
    try:
        manifests = list(nodes_of(parse_shape(text), now=_LONG_AGO))
    except BadShape as trouble:
        raise InvalidManifest("--nodes (--cluster)", str(trouble)) from trouble
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    return manifest_nodes([(text, msgspec.json.encode(listed))])
