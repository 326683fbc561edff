"""Every kind that we know, in one registry."""

from __future__ import annotations

from unisono.kinds import batch, coscheduling, jobset, kubeflow, ray, scheduling, slurm
from unisono.kinds.core import kinds as core
from unisono.kinds.karpenter import node_overlays, node_pools
from unisono.kinds.kueue import kinds as kueue
from unisono.kinds.policy import scheduling as scheduling_policy
from unisono.kinds.policy import schema as policy
from unisono.kinds.registry import Registry, registry
from unisono.kinds.trainer import kinds as trainer
from unisono.kinds.volcano import kinds as volcano

# One entry per module that defines kinds: add yours here.
KNOWN: Registry = registry(
    core.KINDS,
    batch.KINDS,
    coscheduling.KINDS,
    jobset.KINDS,
    node_overlays.KINDS,
    node_pools.KINDS,
    kubeflow.KINDS,
    kueue.KINDS,
    policy.KINDS,
    ray.KINDS,
    scheduling.KINDS,
    scheduling_policy.KINDS,
    slurm.KINDS,
    trainer.KINDS,
    volcano.KINDS,
)
