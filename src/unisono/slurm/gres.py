"""Generic resources as Slurm writes them, and the resources that stand for them here."""

from __future__ import annotations

import re

GPU = "nvidia.com/gpu"
_TYPE = r"[a-zA-Z0-9_.-]*[a-zA-Z_.-][a-zA-Z0-9_.-]*"
_GRES = re.compile(rf"([a-zA-Z0-9_-]+)(?::({_TYPE}))?(?::(\d+)([KM]?))?")


def gres_of(text: str) -> list[tuple[str, str, int]]:
    """Return what `gpu:a100:8,nic:2` says: name, type, count.

    >>> gres_of("gpu:a100:8,gpu:2,nic")
    [('gpu', 'a100', 8), ('gpu', '', 2), ('nic', '', 1)]
    """
    found = []
    for part in filter(None, (one.split("(")[0].strip() for one in text.split(","))):
        shape = _GRES.fullmatch(part)
        if shape is None:
            raise ValueError(f"{part!r} is not a generic resource; write it like gpu:a100:2")
        count = int(shape[3] or 1) * {"": 1, "K": 1024, "M": 1024 * 1024}[shape[4] or ""]
        found.append((shape[1].lower(), (shape[2] or "").lower(), count))
    return found


def resource_of(gres: str) -> str:
    """Return the resource that stands for a generic resource."""
    return GPU if gres == "gpu" else f"gres.unisono.dev/{gres.replace('_', '-').lower()}"
