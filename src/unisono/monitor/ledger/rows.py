"""Rows of the ledger. Times are whole seconds since 1970, 0 for what has not happened.

A row is known by its key, and writing it again changes nothing: after a crash the same facts are
read from the objects of the cluster and lead to the same rows. They hold nothing but words and
numbers, so the garbage collector need not look at hundreds of thousands of them (`gc=False`).
"""

from __future__ import annotations

import msgspec


class PodRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod on its GPUs, from the binding to the end."""

    uid: str
    namespace: str
    name: str
    workload: str  # the uid of its gang; empty without a workload
    node: str
    gpus: int
    bound: int
    started: int = 0
    ended: int = 0
    outcome: str = ""  # Succeeded, Failed, or Gone if it was deleted before its end
    saved: int = 0  # when the gang's last checkpoint before its end was written
    # What its devices did, as far as it was measured: GPU-seconds.
    busy: float = 0.0
    tensor: float = 0.0
    covered: float = 0.0
    idle_devices: int = 0  # that were hardly ever busy
    peak_mib: int = 0


class WorkloadRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One try of a workload: it waits, starts, runs, and ends or has to leave."""

    uid: str
    attempt: int
    namespace: str
    name: str
    kind: str
    owner: str
    queue: str
    local_queue: str
    user: str
    team: str
    priority_class: str
    flavor: str
    gpus: int
    pods: int
    since: int  # when it began to wait
    reserved: int = 0
    admitted: int = 0
    ready: int = 0
    ended: int = 0
    outcome: str = ""  # Finished, or why it had to leave; empty while it is there
    saved: int = 0  # when its last checkpoint was written
    limit: int = 0  # seconds it said it would run at most
    # Starts that were told while it was pending: the start, when that was told, and 1 for a
    # reservation; the first, the one that stood at half of that wait, and the last.
    told_first: tuple[int, int, int] = (0, 0, 0)
    told_half: tuple[int, int, int] = (0, 0, 0)
    told_last: tuple[int, int, int] = (0, 0, 0)


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node as it was for a while; another row follows when something changes."""

    uid: str
    since: int
    until: int = 0
    name: str
    gpus: int
    model: str
    instance_type: str
    capacity_type: str
    pool: str
    micro_usd_hour: int  # its price; an integer, so that sums are exact
    is_up: bool
    problem: str = ""  # what is wrong with its devices: Xid79, Straggler; empty if nothing is


class QueueRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a queue might use of a flavor for a while."""

    queue: str
    flavor: str
    cohort: str
    gpus: int
    since: int
    until: int = 0


Row = PodRow | WorkloadRow | NodeRow | QueueRow
