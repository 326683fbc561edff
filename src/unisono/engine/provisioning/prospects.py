"""Whether machines could be bought for somebody who has no quota yet: then others may leave for it.

Nobody is made to leave for quota that would then find no nodes; machines that can be bought count
as nodes here. They are bought when the others have left. Spec provisioning §5.16.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from unisono.engine.model.explanation import CannotBuy
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.placement.seek import Seeker
from unisono.engine.provisioning.adrift import given_up
from unisono.engine.provisioning.purchase import Shop
from unisono.engine.provisioning.shelf import Shelf
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.cluster import ClusterState

# Says whether there are machines for an assignment once these others have left.
CouldBuy = Callable[[Assignment, Collection[WorkloadKey]], bool]


def could_buy(
    state: ClusterState, workload: Workload, seeker: Seeker | None, now: Instant
) -> CouldBuy | None:
    """Return what knows whether there are machines for an assignment, on nodes as they are.

    Machines that are on their way to those who leave count as well. None: nothing is for sale.
    """
    market = state.config.market
    if market is None or seeker is None or seeker.kept is not None:
        return None

    def answer(assignment: Assignment, gone: Collection[WorkloadKey]) -> bool:
        shop = Shop(state, Shelf(given_up(market, gone)), now)
        return not isinstance(shop.buy(workload, seeker.gang(assignment)), CannotBuy)

    return answer
