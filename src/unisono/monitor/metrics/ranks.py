"""Ranks: how long their steps take, when they made the last one, and who holds the others up.

Only pods that report steps have series, and only while they hold a node. Scores are those that the
watchdog acts on (`kinds/pace.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.kinds.pace import ranked
from unisono.monitor.books import Books
from unisono.monitor.exposition import Family, Sample
from unisono.monitor.records import PodRecord

# Three series each; larger gangs exist, but nobody looks at more lines than that.
_MOST_RANKS = 10_000


def families(books: Books) -> Iterator[Family]:
    """Yield what pods say of their steps."""
    pods = [one for one in books.living() if one.workload and one.stepped][:_MOST_RANKS]
    timed = [one for one in pods if one.step_seconds]
    yield Family(
        "unisono_rank_step_seconds",
        "gauge",
        "How long a step takes a rank: the median of its last ones.",
        [Sample(_labels(one), one.step_seconds) for one in timed],
    )
    yield Family(
        "unisono_rank_last_step_timestamp_seconds",
        "gauge",
        "When a rank reported its last step.",
        [Sample(_labels(one), one.stepped) for one in pods],
    )
    yield Family(
        "unisono_straggler_score",
        "gauge",
        "How much slower a rank is than the median of its gang, in usual deviations.",
        _scores(timed),
    )


def _scores(pods: list[PodRecord]) -> Iterator[Sample]:
    gangs: dict[tuple[str, str], dict[str, PodRecord]] = {}
    for one in pods:
        gangs.setdefault((one.namespace, one.workload), {})[one.name] = one
    for ranks in gangs.values():
        scores = ranked({name: one.step_seconds for name, one in ranks.items()})
        for name, rank in scores.items():
            yield Sample(_labels(ranks[name]), round(rank.score, 3))


def _labels(pod: PodRecord) -> Mapping[str, str]:
    return {
        "namespace": pod.namespace,
        "workload": pod.workload,
        "rank": pod.rank,
        "pod": pod.name,
        "node": pod.node,
    }
