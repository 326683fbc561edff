"""Partitions as Slurm's programs show them: those of slurm.conf, else one for all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.slurm.nodes import NodeRow

WITHOUT_CONF = "default"


def partitions_of(
    stored: Mapping[str, Any] | None, nodes: Sequence[NodeRow]
) -> dict[str, tuple[list[NodeRow], dict[str, str]]]:
    """Return the nodes of each partition, and what slurm.conf says of it (keys in lower case)."""
    text = ((stored or {}).get("data") or {}).get("slurm.conf") or ""
    if not text.strip():
        return {WITHOUT_CONF: (list(nodes), {"default": "YES", "state": "UP"})}
    from unisono.slurm.conf import read_conf

    conf = read_conf(text)
    return {
        one.name: (
            [node for node in nodes if one.name in node.partitions],
            {key: value.text for key, value in one.keys.items()},
        )
        for one in conf.partitions
    }
