"""Words for queues that cannot work as they are configured."""

from __future__ import annotations

from unisono.engine.model import explanation as facts


def inactive_sentence(fact: facts.QueueInactive) -> str:
    """Say why a queue is inactive."""
    what = {
        "Terminating": "it is being deleted",
        "FlavorNotFound": f"ResourceFlavor {fact.detail} does not exist",
        "AdmissionCheckNotFound": f"AdmissionCheck {fact.detail} does not exist",
        "AdmissionCheckInactive": f"AdmissionCheck {fact.detail} is not active",
        "TopologyNotFound": f"Topology {fact.detail} does not exist",
        "CohortCycle": f"cohort {fact.detail} is its own ancestor",
    }
    return f"ClusterQueue {fact.queue} is inactive: {what[fact.why]}"
