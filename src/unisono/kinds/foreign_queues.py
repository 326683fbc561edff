"""How queues of other schedulers are called here, and which labels name them.

kai.scheduler/queue: NAME on a job or pod     KAI's Queue NAME, kept as the queue `kai-NAME`
an ElasticQuota in a namespace                every job of it that names no queue
"""

from __future__ import annotations

import hashlib

KAI_QUEUE_LABELS = ("kai.scheduler/queue", "runai/queue")
KAI_GROUP_ANNOTATION = "pod-group-name"
_LONGEST = 40  # of a name that is kept whole; a queue's name is part of others


def kai_queue_name(name: str) -> str:
    """Return the name of the queue that stands for one of KAI's.

    >>> kai_queue_name("team-a")
    'kai-team-a'
    """
    return _bounded(f"kai-{name}")


def elastic_queue_name(namespace: str, name: str) -> str:
    """Return the name of the queue that stands for an ElasticQuota.

    >>> elastic_queue_name("team-a", "gpus")
    'elasticquota-team-a-gpus'
    """
    return _bounded(f"elasticquota-{namespace}-{name}")


def _bounded(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9].rstrip('-.')}-{digest}"
