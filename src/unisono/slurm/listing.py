"""Lists of the API, read fast: thousands of jobs in a fraction of a second."""

from __future__ import annotations

import json

from unisono.slurm.client import ApiClient
from unisono.slurm.labels import NAMESPACE
from unisono.slurm.lite_typing import Json

# The ConfigMap with the scheduler's numbers that Slurm's commands show.
PUBLISHED_MAP = "slurm-turns"
# On a laptop with everything else of Slurm, on a cluster in the scheduler's own namespace: it may
# write nowhere else.
_PLACES = (NAMESPACE, "unisono-system")
_SMALL = 1 << 16


def decoded(listing: bytes) -> list[Json]:
    """Return the items of a list."""
    if len(listing) > _SMALL:
        # Worth its loading for many; the few of a small cluster are read sooner without.
        import orjson

        whole: Json = orjson.loads(listing)
    else:
        whole = json.loads(listing)
    return whole.get("items") or []


def slim_jobs(listing: bytes) -> list[Json]:
    """Return jobs without pod templates and managed fields, which are most of their bytes."""
    if len(listing) <= _SMALL:
        return decoded(listing)
    from unisono.slurm.slim_jobs import jobs_of

    return jobs_of(listing)


def published_priorities(api: ApiClient) -> Json:
    """Return the numbers that the scheduler published: priorities, usage, shares."""
    paths = (f"/api/v1/namespaces/{place}/configmaps/{PUBLISHED_MAP}" for place in _PLACES)
    found = next((there for there in map(api.find, paths) if there), None)
    text = ((found or {}).get("data") or {}).get("turns") or "{}"
    made: Json = json.loads(text)
    return made


def priorities(api: ApiClient) -> dict[str, int]:
    """Return priorities by the number of the job."""
    return published_priorities(api).get("priorities") or {}
