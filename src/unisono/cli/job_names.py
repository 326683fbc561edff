"""Jobs in the place of their Workloads: users named a job, and the scheduler names its Workload."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from unisono.cli.workload_state import job_of

if TYPE_CHECKING:
    from unisono.kube.form import Json


# Namespace and name; what stands after a full stop at the end is no part of it.
_KEY = re.compile(r"(?<![\w./-])[\w.-]+/[\w.-]*\w(?![\w/-])")


def job_names(workloads: Iterable[Json]) -> dict[str, str]:
    """Return the job behind each Workload, both with their namespace."""
    found = {}
    for one in workloads:
        namespace = one["metadata"].get("namespace", "")
        found[f"{namespace}/{one['metadata']['name']}"] = f"{namespace}/{job_of(one)}"
    return found


def by_jobs(facts: Any, names: Mapping[str, str]) -> Any:
    """Return texts, alone or in lists and maps, with jobs in the place of their Workloads.

    >>> by_jobs(["ml/job-a-1f has ended", "ml/job-a-1f2"], {"ml/job-a-1f": "ml/job/a"})
    ['ml/job/a has ended', 'ml/job-a-1f2']
    """

    def renamed(value: Any) -> Any:
        match value:
            case str():
                return _KEY.sub(lambda found: names.get(found[0], found[0]), value)
            case list():
                return [renamed(one) for one in value]
            case dict():
                return {key: renamed(one) for key, one in value.items()}
            case _:
                return value

    return renamed(facts)
