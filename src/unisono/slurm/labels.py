"""Names that all Slurm support shares: the kind, labels, annotations, objects, resources."""

from __future__ import annotations

import re

API_VERSION = "unisono.dev/v1"
KIND = "SlurmJob"
# Where the API serves SlurmJobs of all namespaces.
JOBS = "/apis/unisono.dev/v1/slurmjobs"
# On nodes: of which partitions they are, which features they have, which sort of GPU.
_PARTITION = "partition.unisono.dev/"
_FEATURE = "feature.unisono.dev/"
GPU_TYPE = "unisono.dev/gpu-type"
NODE_CLASS = "unisono.dev/node-class"
# On jobs, by which programs find them.
JOB_ID = "unisono.dev/slurm-job"
DEPENDS_ON = "unisono.dev/depends-on"
ARRAY_ID = "unisono.dev/slurm-array"
# Beside a job's options: the minutes that it was started with, if it had left that open.
GRANTED_OPTION = "time-granted"
# Where settings and the counter of job ids are kept.
NAMESPACE = "kube-system"
CONF = "slurm-conf"
COUNTER = "slurm-job-ids"

_LONGEST = 63


def partition_label(name: str) -> str:
    """Return the label of nodes that are in a partition.

    >>> partition_label("main")
    'partition.unisono.dev/main'
    """
    return _PARTITION + label_part(name)


def feature_label(name: str) -> str:
    """Return the label of nodes that have a feature."""
    return _FEATURE + label_part(name)


def feature_of(label: str) -> str:
    """Return the feature that a label stands for; empty if it stands for none."""
    return label.removeprefix(_FEATURE) if label.startswith(_FEATURE) else ""


def partition_of(label: str) -> str:
    """Return the partition that a label stands for; empty if it stands for none."""
    return label.removeprefix(_PARTITION) if label.startswith(_PARTITION) else ""


def label_part(text: str) -> str:
    """Return a text as the part of a label or its value: other letters become dashes."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).strip("-._")[:_LONGEST].strip("-._")


def object_name(text: str, longest: int = 40) -> str:
    """Return a text as the name of an object: small letters, digits and dashes.

    >>> object_name("Train $(rm -rf /) v2"), object_name("?")
    ('train-rm-rf-v2', 'job')
    """
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].strip("-")
    return made or "job"


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
