"""Pods that ended must not fill the store: beyond a number the oldest ones are removed.

As kube-controller-manager does it (`--terminated-pod-gc-threshold`, 12,500 there and here): a Job
with a million completions would otherwise leave a million pods, some 20 kB of memory each. A pod
with a finalizer is still to be counted by its Job, and stays.
"""

from __future__ import annotations

from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.writer import Writer
from unisono.apiserver.storage.record import Record

MOST_ENDED_PODS = 12_500
_ENDED = (b'"Succeeded"', b'"Failed"')
_ENDED_PHASES = ("Succeeded", "Failed")
# In one go, so that requests are not held up.
_PER_ROUND = 500


def remove_ended_pods(server: ServerContext, writer: Writer) -> int:
    """Remove the oldest pods that ended, beyond so many; return how many were removed."""
    # Decoding every pod would take a second where there are many: the bytes tell nearly all of it.
    ended = [
        record
        for record in server.store.listing("/pods")
        if any(phase in record.data for phase in _ENDED)
    ]
    excess = len(ended) - MOST_ENDED_PODS
    if excess <= 0:
        return 0
    removed = 0
    for record in sorted(ended, key=lambda one: one.rv)[:excess]:
        removed += _remove(server, writer, record)
        if removed >= _PER_ROUND:
            break
    return removed


def _remove(server: ServerContext, writer: Writer, record: Record) -> int:
    newest = server.store.newest(record.key)
    if newest is None or newest.rv != record.rv:
        return 0
    pod = newest.load()
    is_ended = (pod.get("status") or {}).get("phase") in _ENDED_PHASES
    if not is_ended or pod["metadata"].get("finalizers"):
        return 0
    writer.remove(newest, pod)
    return 1
