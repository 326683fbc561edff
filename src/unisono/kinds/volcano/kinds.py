"""What the registry knows of Volcano's kinds."""

from __future__ import annotations

from unisono.kinds.registry import GroupHooks, Kind
from unisono.kinds.volcano.groups import PodGroup, check_group, is_gang, queue_of_group, rules_of
from unisono.kinds.volcano.hypernodes import HyperNode, check_hypernode
from unisono.kinds.volcano.jobs import JOB_HOOKS, VolcanoJob, check_job
from unisono.kinds.volcano.queues import Queue, check_queue

KINDS = (
    Kind(
        group="batch.volcano.sh",
        version="v1alpha1",
        kind="Job",
        struct=VolcanoJob,
        namespaced=True,
        check=check_job,
        job=JOB_HOOKS,
    ),
    Kind(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="PodGroup",
        struct=PodGroup,
        namespaced=True,
        check=check_group,
        gang=GroupHooks(rules=rules_of, is_gang=is_gang, queue=queue_of_group),
    ),
    Kind(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="Queue",
        struct=Queue,
        namespaced=False,
        check=check_queue,
    ),
    Kind(
        group="topology.volcano.sh",
        version="v1alpha1",
        kind="HyperNode",
        struct=HyperNode,
        namespaced=False,
        check=check_hypernode,
    ),
)
