"""Purchases of one cycle: machines for a nominee that has quota and no place.

Decided when the nominee is, not at nomination: then what others of the same cycle have bought, or
have taken of the free nodes, counts already. Spec provisioning §5.2 and §5.16.

A running gang that wants more pods gets machines for as many as can be had, in the zone and of the
model of those that it is on. What runs is not touched, whatever becomes of the purchase; the pods
for which there are no machines go on waiting.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.explanation import Blocker, CannotBuy
from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import ZONE, ProvisioningOptions
from unisono.engine.model.selection import Labels
from unisono.engine.nominate import Nominee, placed_counts
from unisono.engine.placement.demand import Demand, narrowed
from unisono.engine.placement.gang import Gang
from unisono.engine.provisioning.catalogue import Catalogue
from unisono.engine.provisioning.order import has_gpus
from unisono.engine.provisioning.purchase import MODEL_LABEL, Bought, Provisioner
from unisono.engine.quota.assign import Assignment, Verdict, resized
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.gang_request import shrunk
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.transaction import Transaction


class Purchases:
    """What one cycle can buy, after what it bought already."""

    def __init__(self, state: ClusterState, transaction: Transaction, now: Instant) -> None:
        """Take what can be bought before this cycle bought anything."""
        offerings = state.config.offerings
        assert offerings is not None, "nothing is bought without offerings"
        self._transaction = transaction
        self._preference = state.policy.provisioning.preference
        self.provisioner = Provisioner(state, Catalogue(offerings), now)

    def buy_for(self, nominee: Nominee, leaving: list[PlacedPods]) -> None:
        """Make a nominee fit by machines that are bought for it, or note why not.

        `leaving` are victims' pods: the transaction counts their nodes as free; they are not yet.
        """
        if nominee.targets and self._preference == "reclaim-then-provision":
            return
        if (
            nominee.waits_for_terminating
            or nominee.node_search is None
            or nominee.purchase is not None
        ):
            return
        mark = self._transaction.mark()
        for placed in leaving:
            self._transaction.occupy(placed)
        refusals: list[Blocker] = []
        for assignment in nominee.affordable:
            answer = self._buy(nominee, assignment)
            if isinstance(answer, CannotBuy):
                refusals.append(answer)
            elif answer[1].purchase.node_claims:
                _take(nominee, *answer)
                break
        self._transaction.rollback(mark)
        if nominee.purchase is None:
            _refuse(nominee, refusals, may_preempt=self._preference != "provision-only")

    def _buy(
        self, nominee: Nominee, assignment: Assignment
    ) -> tuple[Assignment, Bought] | CannotBuy:
        assert nominee.node_search is not None, "without nodes there is nothing to buy for"
        if nominee.replaced is not None:
            return _buy_more(self.provisioner, nominee, assignment)
        answer = self.provisioner.buy(
            nominee.waiting.workload, nominee.node_search.gang(assignment)
        )
        return answer if isinstance(answer, CannotBuy) else (assignment, answer)


def _take(nominee: Nominee, assignment: Assignment, bought: Bought) -> None:
    counts = placed_counts(bought.placements, nominee.waiting.request)
    if counts != assignment.counts:  # an elastic set begins with what it needs
        assignment = resized(assignment, nominee.eligible, counts)
    nominee.assignment = assignment
    nominee.placements = bought.placements
    nominee.targets = []
    nominee.purchase = bought.purchase


def _refuse(nominee: Nominee, refusals: list[Blocker], *, may_preempt: bool) -> None:
    if nominee.targets and may_preempt:
        return
    nominee.targets = []
    nominee.assignment.verdict = Verdict.NO_FIT
    blockers = nominee.assignment.blockers
    others = [one for one in blockers if not isinstance(one, CannotBuy)]
    nominee.assignment.blockers = [*refusals, *others]


def _buy_more(
    provisioner: Provisioner, nominee: Nominee, assignment: Assignment
) -> tuple[Assignment, Bought] | CannotBuy:
    """Buy for all new pods of an assignment, or for as many as there are machines for."""
    found = _try(provisioner, nominee, assignment)
    if isinstance(found, Bought):
        return assignment, found
    best: tuple[Assignment, Bought] | None = None
    low, high = 1, nominee.waiting.request.most_steps
    while low <= high:
        middle = (low + high) // 2
        counts = shrunk(nominee.waiting.request, middle)
        fewer = resized(assignment, nominee.eligible, counts)
        some = _try(provisioner, nominee, fewer)
        if isinstance(some, Bought):
            best, high = (fewer, some), middle - 1
        else:
            low = middle + 1
    return best or found


def _try(provisioner: Provisioner, nominee: Nominee, assignment: Assignment) -> Bought | CannotBuy:
    assert nominee.node_search is not None, "without nodes there is nothing to buy for"
    gang = nominee.node_search.more(assignment)
    labels = _shared(provisioner, nominee)
    whole = tuple(_whole(demand, labels) for demand in gang.demands)
    answer = provisioner.buy(nominee.waiting.workload, Gang(key=gang.key, demands=whole))
    if isinstance(answer, CannotBuy):
        return answer
    return Bought(answer.purchase, nominee.node_search.beside(assignment, answer.placements))


def _whole(demand: Demand, labels: Labels) -> Demand:
    """Return a demand for all of its pods, next to those that run."""
    all_of_it = msgspec.structs.replace(demand, least=demand.most)
    return narrowed(all_of_it, labels) if has_gpus(demand) else all_of_it


def _shared(provisioner: Provisioner, nominee: Nominee) -> Labels:
    """Return what new machines have to share with the nodes that the gang is on."""
    assert nominee.replaced is not None, "only a running gang grows"
    buying: ProvisioningOptions = nominee.waiting.workload.buying
    policy, table = provisioner.state.policy.provisioning, provisioner.state.nodes.table
    keys = [ZONE] if policy.same_zone and buying.scope != "any" else []
    if policy.same_model and not buying.mixed_models:
        keys.append(MODEL_LABEL)
    rows = [
        table.row_of[name]
        for one in nominee.replaced.admitted.admission.pod_sets
        for name, _ in one.nodes
        if name in table.row_of
    ]
    nodes = [dict(node.labels) for row in rows if (node := table.nodes[row]) is not None]
    shared: dict[str, str] = {}
    for key in keys:
        values = {labels[key] for labels in nodes if labels.get(key)}
        if len(values) == 1:
            shared[key] = values.pop()
    return tuple(sorted(shared.items()))
