"""May an admitted gang run on nodes assigned later: replacements of lost ones, or bought ones?

It is checked as an elastic slice that replaces itself: the pods it keeps run already, new ones need
room, and quota is not checked, because it holds it.
"""

from __future__ import annotations

import msgspec

from unisono.engine.audit.nodes import check_nodes
from unisono.engine.audit.purchases import with_bought
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission, Workload


def audit_repair(
    snapshot: Snapshot, workload: Workload, repaired: Admission, purchase: Purchase | None = None
) -> tuple[Violation, ...]:
    """Return what is wrong with the new nodes of an admitted workload."""
    repaired_workload = msgspec.structs.replace(
        workload,
        key=WorkloadKey(f"{workload.key}+repair"),
        replaces=workload.key,
        reclaimable=(),
        pod_sets=tuple(msgspec.structs.replace(one, topology=None) for one in workload.pod_sets),
    )
    placed = msgspec.structs.replace(
        repaired,
        pod_sets=tuple(  # finished pods have released their nodes
            msgspec.structs.replace(one, count=sum(pods for _, pods in one.nodes))
            for one in repaired.pod_sets
        ),
    )
    if purchase is not None:
        purchase = msgspec.structs.replace(purchase, workload=repaired_workload.key)
    admit = Admit(
        workload=repaired_workload.key, admission=placed, replaces=workload.key, purchase=purchase
    )
    plan = Plan(based_on=snapshot.version, now=snapshot.now, admissions=(admit,))
    nodes = tuple(  # nodes held for the gang are held for its repaired self
        msgspec.structs.replace(node, held_for=repaired_workload.key)
        if node.held_for == workload.key
        else node
        for node in snapshot.nodes
    )
    before = msgspec.structs.replace(snapshot, waiting=(repaired_workload,), nodes=nodes)
    return tuple(check_nodes(with_bought(SnapshotIndex(before), before.market, plan), plan))
