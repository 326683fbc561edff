"""The one module of the recorded decisions that knows the engine's names.

Cases are plain JSON in the field's words (`store.py` says what is in one). `World` takes their
steps and turns each into calls of the engine; `canonical` and `World` turn what was decided into
plain JSON again. When something in the engine is renamed, this module changes
and no recorded case does: in `_WORDS` the engine's name of a field stands left of the colon, the
recorded one right.

What is compared is what others see: nodes, flavors, counts, victims with their reasons, times,
purchases, and the facts why something waits, under their public tags. Sentences are not: of a field
marked with `~`, which holds free text, only the words with a digit or a sign in them count. Neither
is the bookkeeping that makes the next cycle cheap, nor a field marked with `-`: it is newer than
the cases, decides nothing, and has tests of its own.
"""

from __future__ import annotations

import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import msgspec

from unisono.engine.cluster import new_cluster, restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run, give_up, leave, refuse_broken_repair
from unisono.engine.estimates import estimates
from unisono.engine.explain.waiting import explanations
from unisono.engine.model import (
    explanation as facts,
)
from unisono.engine.model import (
    multifactor,
    node,
    policy,
    provisioning,
    queue,
    selection,
    workload,
)
from unisono.engine.model import (
    snapshot as snapshots,
)
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import (
    Admit,
    Await,
    BackfillReservation,
    DueEviction,
    EvictionReason,
    Plan,
    Preempt,
    PreemptionReason,
    Victim,
)
from unisono.engine.ordering.priority_order import priority_factors
from unisono.engine.provisioning.catalogue import Catalogue, Refused, after_refusal, outage_of
from unisono.engine.repair import place_reserved, repair, replacement
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.purchases import after_arrival, after_return, without_node_claims
from unisono.engine.state.run_history import History, alike, with_limit
from unisono.engine.state.snapshots import pending, snapshot

Json = Any
replace = msgspec.structs.replace

# Every value that a case can hold: `engine's field:recorded word`, or one word where they agree.
_WORDS: Mapping[type[msgspec.Struct], str] = {
    # what pods ask for and nodes repel
    selection.Requirement: "key operator values",
    selection.Toleration: "key operator value effect",
    selection.Taint: "key value effect",
    selection.LabelSelector: "requirements",
    node.HostPort: "port protocol address",
    node.PodSelector: "labels namespaces every_namespace",
    node.PodRule: "selector topology_key",
    node.SpreadRule: "selector topology_key max_skew min_domains",
    # nodes
    node.Topology: "name levels",
    node.Node: "name labels taints allocatable unschedulable ready held_for:reserved_for",
    node.NodePod: "key:name node requests labels host_ports anti_affinity device leaves_at",
    # queues and quota
    queue.Flavor: "name node_labels node_taints tolerations topology",
    queue.ResourceQuota: "resource:name nominal borrowing_limit lending_limit",
    queue.FlavorQuota: "flavor:name resources",
    queue.ResourceGroup: "covered:covered_resources flavors pool:pooled_quota",
    queue.BorrowWithinCohort: "policy max_priority_threshold",
    queue.PreemptionRules: "within_queue:within_cluster_queue reclaim:reclaim_within_cohort "
    "borrow:borrow_within_cohort min_runtime_ms victims_have may_be_reclaimed",
    queue.FlavorFungibility: "when_can_borrow when_can_preempt preference",
    queue.CheckRule: "name on_flavors",
    queue.ClusterQueue: "name cohort groups:resource_groups strategy:queueing_strategy "
    "namespace_selector fungibility:flavor_fungibility preemption checks:admission_checks "
    "stop:stop_policy weight_milli:fair_weight_milli usage_based_admission terminating unlimited",
    queue.Cohort: "name parent groups:resource_groups weight_milli:fair_weight_milli",
    queue.LocalQueue: "key:name queue:cluster_queue stop:stop_policy "
    "weight_milli:fair_weight_milli consumed_micro consumed_at penalty_micro",
    snapshots.Namespace: "name labels",
    snapshots.AdmissionCheck: "name active brings_nodes:provisions_nodes",
    # policy
    policy.FairSharing: "strategies:preemption_strategies",
    policy.AdmissionFairSharing: "half_life_ms sampling_ms weights_milli:resource_weights_milli",
    policy.PodsReady: "timeout_ms recovery_timeout_ms block_admission requeue_by:requeue_timestamp "
    "backoff_limit backoff_base_ms backoff_max_ms",
    policy.Placement: "scoring levels gpu_mode needs_nodes wait_for_leaving_ms:terminating_wait_ms",
    policy.Backfill: "dates:reservations window_ms resolution_ms most_tested:max_tested "
    "most_per_queue:max_per_local_queue shortest_first default_limit_ms",
    policy.Provisioning: "same_zone same_model packing single_packing slack_milli spot "
    "interruptions_milli restart_ms most_per_hour_micro:max_per_hour_micro "
    "most_at_once:max_in_flight preference",
    policy.Policy: "fair_sharing admission_fair_sharing pods_ready placement "
    "multifactor:priority_order backfill reservations:advance_reservations provisioning "
    "undeclared:undeclared_resources "
    "anti_thrash strict:strict_kueue",
    policy.AdvanceReservation: "name start end nodes local_queues namespaces accounts users repeat",
    multifactor.SubmitOptions: "account user qos partition nice site:site_factor "
    "priority:set_priority hold number:job_id task:array_task",
    multifactor.Limits: "group_tres group_tres_minutes group_tres_run_minutes group_jobs "
    "group_jobs_accruing group_submitted group_wall_ms tres_per_job "
    "least_tres_per_job:min_tres_per_job tres_per_node tres_minutes_per_job wall_per_job_ms "
    "tres_per_user tres_run_minutes_per_user jobs_per_user jobs_accruing_per_user "
    "submitted_per_user tres_per_account tres_run_minutes_per_account jobs_per_account "
    "jobs_accruing_per_account submitted_per_account",
    multifactor.Association: "account user parent shares priority qos default_qos "
    "limits is_default",
    multifactor.Qos: "name priority usage_factor deny_on_limit no_decay "
    "over_partition:over_part_qos ignores_partition_time ignores_partition_nodes limits",
    multifactor.Partition: "name is_default state tier:priority_tier "
    "job_factor:priority_job_factor qos max_time_ms min_nodes max_nodes allow_accounts "
    "deny_accounts allow_qos deny_qos limits billing_weights node_labels",
    multifactor.Weights: "age association fair_share job_size partition qos tres priority_class",
    multifactor.MultifactorRules: "order weights max_age_ms age_from_submission "
    "half_life_ms reset fair_share dampening favor_small small_relative_to_time billing "
    "raw:unnormalised compat:slurm_steps "
    "calc_period_ms associations qos partitions accounts_of default_account default_qos "
    "known_users_only operators totals",
    multifactor.UsageRecord: "owner what amount at",
    multifactor.Factors: "priority tier:priority_tier is_set age association fair_share job_size "
    "partition qos tres site:site_factor nice",
    # instance types and NodeClaims
    provisioning.InstanceType: "name labels allocatable capacity model:gpu_model",
    provisioning.Offer: "machine:instance_type zone region capacity_type price_micro stock ends_at",
    provisioning.Pool: "name weight labels taints requirements limits used refused:not_ready "
    "allows_gang_spot interruptions_milli",
    provisioning.UnavailableOffer: "machine:instance_type zone capacity_type count until "
    "fewer_from at",
    provisioning.NodeClaim: "node pool:node_pool machine:instance_type zone capacity_type "
    "price_micro pods taken_over:reused",
    provisioning.PendingNodeClaims: "workload node_claims ready_by",
    provisioning.Offerings: "machines:instance_types offers:offerings pools:node_pools "
    "outages:unavailable_offerings overhead:daemon_overhead soon_ms:provisioning_ms "
    "under_way:in_flight spent_micro coming:node_claims orphaned:orphaned_node_claims",
    provisioning.ProvisioningOptions: "scope mixed_models spot packing restart_ms "
    "accepts_block_end",
    provisioning.Alternative: "machines:instance_types zone capacity_type price_micro "
    "~lacks:unavailable",
    provisioning.Purchase: "workload node_claims ready_by alternatives",
    # workloads
    workload.Dependency: "kind on delay_ms",
    workload.Result: "job succeeded ended_at started_at",
    workload.TopologyRequest: "mode level slice_level slice_size",
    workload.WeightedTerm: "weight term",
    workload.PodSet: "name count min_count requests node_selector affinity:node_affinity "
    "tolerations topology node_requests group preferred:preferred_node_affinity labels host_ports "
    "affinity_to:pod_affinity anti_affinity:pod_anti_affinity spread:topology_spread "
    "volumes:volume_affinity",
    workload.CheckState: "name state",
    workload.Workload: "key:name uid queue:local_queue pod_sets priority created_at queued_at "
    "active gated_by requeue_at on_hold checks:admission_checks reclaimable:reclaimable_pods "
    "replaces:replaces_slice preemptions may_preempt_at requeues max_execution_ms "
    "past_execution_ms time_limit_ms limit_from:time_limit_source "
    "least_limit_ms:min_time_limit_ms begin_at:begin_time deadline misconfigured "
    "min_total:min_available submit_options:accounting can_shrink:elastic_shrink array "
    "array_limit:array_parallelism job buying:provisioning depends:dependencies "
    "depends_on_any:any_dependency empty_sets",
    workload.PodSetAssignment: "name count flavors nodes devices",
    workload.Admission: "queue:cluster_queue pod_sets",
    workload.AdmittedWorkload: "workload admission reserved_at:quota_reserved_at evicting "
    "may_start:admitted admitted_at ready:pods_ready unready_since keeps:shrinks_to "
    "ready_by:nodes_ready_by",
    # decisions
    Admit: "workload admission charges:quota_charges borrow_level checks_pass:admitted "
    "replaces:replaces_slice purchase opportunistic_on:nodes_lent_by limit_ms:time_limit_ms",
    Victim: "workload reason already_evicting keeps:shrinks_to",
    Preempt: "workload admission victims buys:provisions_afterwards",
    Await: "workload admission pods",
    DueEviction: "workload reason requeue_at deactivate",
    BackfillReservation: "workload start end",
    # facts; their tags are public
    facts.QuotaExhausted: "queue pod_set flavor resource wanted available tried_preemption",
    facts.ExceedsMaximum: "queue pod_set flavor resource wanted maximum",
    facts.ResourceNotCovered: "queue pod_set resource",
    facts.FlavorMismatch: "pod_set flavor why ~detail",
    facts.GangDoesNotFit: "pod_set pods pods_placeable level best_domain cluster_holds nodes "
    "resource wanted_of_node best_node_has largest_node_has refusals labels slice_level "
    "tried_preemption",
    facts.WaitingForVictims: "victims shrinking -lacks -of_another",
    facts.WaitingForPods: "pods until",
    facts.PreemptionBackoff: "until preemptions",
    facts.ClaimedThisCycle: "queue overlapping_victims",
    facts.BehindInQueue: "queue head position",
    facts.QueueMissing: "local_queue queue",
    facts.QueueInactive: "queue why ~detail",
    facts.QueueStopped: "queue local drain",
    facts.NamespaceNotSelected: "queue namespace",
    facts.Misconfigured: "~problem",
    facts.Quarantined: "stage ~problem retry_at",
    facts.CheckFailed: "check state",
    facts.Deactivated: "",
    facts.Gated: "by",
    facts.OnHold: "until",
    facts.WouldDelay: "reserved_for:whom start limit_ms",
    facts.Planned: "start position limit_ms limit_from behind nodes",
    facts.Expected: "start position limit_ms limit_from nodes",
    facts.NotBefore: "begin",
    facts.DeadlineMissed: "deadline limit_ms",
    facts.Reserved: "name start end nodes limit_ms",
    facts.ArrayLimit: "array limit",
    facts.DependencyPending: "kind on",
    facts.DependencyNeverSatisfied: "kind on",
    facts.PodsNotReady: "waiting_for",
    facts.Held: "by",
    facts.NotEntitled: "code ~problem",
    facts.LimitReached: "code owner per member:whose unit tres used wanted limit denied until",
    facts.PoolRefusal: "pool code ~detail",
    facts.CannotBuy: "code pod_set pods each pools alternatives retry_at",
}

# With victims that come back and preempt again, a question must have an end.
_MOST_CYCLES = 30

# Steps that tell the engine one change: their recorded names, and what the engine calls them.
_CHANGES: Mapping[str, type[Any]] = {
    "pending": changes.WorkloadWaits,
    "holding": changes.WorkloadHolds,
    "ended": changes.WorkloadGone,
    "flavor": changes.FlavorSet,
    "no flavor": changes.FlavorGone,
    "cluster queue": changes.QueueSet,
    "no cluster queue": changes.QueueGone,
    "cohort": changes.CohortSet,
    "no cohort": changes.CohortGone,
    "local queue": changes.LocalQueueSet,
    "no local queue": changes.LocalQueueGone,
    "namespace": changes.NamespaceSet,
    "no namespace": changes.NamespaceGone,
    "admission check": changes.CheckSet,
    "no admission check": changes.CheckGone,
    "topology": changes.TopologySet,
    "no topology": changes.TopologyGone,
    "node": changes.NodeSet,
    "no node": changes.NodeGone,
    "pod": changes.PodOnNode,
    "no pod": changes.PodGone,
    "offerings": changes.OfferingsSet,
    "policy": changes.PolicySet,
    "job result": changes.ResultSet,
    "usage": changes.UsageSet,
    "time": changes.TimePassed,
}
_VERB_OF = {change: verb for verb, change in _CHANGES.items()}

# Public names, for the table of what is covered.
FACT_TAGS = tuple(
    sorted(str(kind.__struct_config__.tag) for kind in typing.get_args(facts.Blocker))
)
VICTIM_REASONS = tuple(sorted(typing.get_args(PreemptionReason)))
EVICTION_REASONS = tuple(sorted(typing.get_args(EvictionReason)))


class World:
    """A cluster that a case is told to: every step of it is one call of `take`."""

    def __init__(self, chosen: Json, now: int) -> None:
        self._state = new_cluster(_load(policy.Policy, chosen), now=Instant(now))
        self._evicted: dict[WorkloadKey, DueEviction] = {}  # until they have left
        self._purchases: dict[WorkloadKey, provisioning.Purchase] = {}
        self._refused: dict[tuple[str, str, provisioning.CapacityType], Refused] = {}
        self._aliases = _Aliases()
        self._history = History()

    def take(self, step: list[Json]) -> Json:
        """Take one step; return what was decided, or None if nothing was asked."""
        verb, *given = step
        if (change := _CHANGES.get(verb)) is not None:
            self._state.apply(change(_READ[change](given[0])))
            return None
        return getattr(self, "_" + verb.replace(" ", "_"))(*given)

    @property
    def now(self) -> int:
        """What the clock says."""
        return self._state.now

    def pending(self) -> dict[str, Json]:
        """Return the workloads without quota, by name."""
        return {key: dump(self._state.waiting[key].workload) for key in sorted(self._state.waiting)}

    def holding(self) -> dict[str, Json]:
        """Return the workloads with quota and what they hold, by name."""
        return {key: dump(self._state.running[key].admitted) for key in sorted(self._state.running)}

    def purchased(self) -> dict[str, Json]:
        """Return the purchases that have not arrived, by workload."""
        return {key: dump(one) for key, one in sorted(self._purchases.items())}

    # --- what happens to workloads ---------------------------------------------------------------
    # A step about a workload that is not (any more) in that state does nothing: recorded anew after
    # a change on purpose, a case may well go another way.

    def _left(self, key: WorkloadKey) -> None:
        """The pods of an evicted workload are gone: it is pending again."""
        if key in self._state.running:
            stop = self._evicted.pop(key, None)
            self._purchases.pop(key, None)
            leave(self._state, key, self._state.now, stop)

    def _shrunk(self, key: WorkloadKey) -> None:
        """The pods are gone that a workload had to give up."""
        running = self._state.running.get(key)
        if running is not None and running.admitted.keeps is not None:
            give_up(self._state, key)

    def _status(self, key: WorkloadKey, patch: Json) -> None:
        """Something changes about a workload with quota."""
        running = self._state.running.get(key)
        if running is not None:
            patched = replace(running.admitted, **_load_fields(workload.AdmittedWorkload, patch))
            self._state.apply(changes.WorkloadHolds(patched))

    def _edit(self, key: WorkloadKey, patch: Json) -> None:
        """A user edits a workload, pending or not."""
        fields = _load_fields(workload.Workload, patch)
        running = self._state.running.get(key)
        if running is not None:
            edited = replace(running.admitted.workload, **fields)
            self._state.apply(changes.WorkloadHolds(replace(running.admitted, workload=edited)))
        elif key in self._state.waiting:
            edited = replace(self._state.waiting[key].workload, **fields)
            self._state.apply(changes.WorkloadWaits(edited))

    def _ran(self, told: Json, owner: str, uid: str, ended_at: int, ran_ms: int) -> None:
        """A job has succeeded after so long."""
        one = alike(load_workload(told), owner)
        self._history.note(one, uid=uid, ended_at=Instant(ended_at), ran_ms=ran_ms)

    # --- what happens to the scheduler -----------------------------------------------------------

    def _restart(self) -> None:
        """The scheduler starts anew from a snapshot, as when a recording is replayed."""
        explains = self._state.explains
        self._state = restore(snapshot(self._state))
        self._state.explains = explains

    def _unexplained(self) -> None:
        """From now on explanations are not requested, as in a simulation."""
        self._state.explains = False

    # --- what happens to purchases ---------------------------------------------------------------

    def _ordered(self, key: WorkloadKey) -> None:
        """A purchase is on its way: its workload lends the nodes that it holds already."""
        purchase, running = self._purchases.get(key), self._state.running.get(key)
        if purchase is not None and running is not None:
            admitted = replace(running.admitted, ready_by=purchase.ready_by)
            self._state.apply(changes.WorkloadHolds(admitted))

    def _arrived(self, key: WorkloadKey) -> None:
        """All nodes of a purchase have joined: its workload starts."""
        purchase = self._purchases.pop(key, None)
        running, now = self._state.running.get(key), self._state.config.offerings
        if purchase is None or running is None or now is None:
            return
        self._state.apply(changes.OfferingsSet(after_arrival(now, purchase)))
        for claim in purchase.node_claims:
            self._join(claim, now)
        admitted = running.admitted
        admission = replace(
            admitted.admission,
            pod_sets=tuple(
                replace(
                    one, nodes=tuple((self._aliases.named(name), pods) for name, pods in one.nodes)
                )
                for one in admitted.admission.pod_sets
            ),
        )
        started = replace(
            admitted,
            admission=admission,
            may_start=True,
            admitted_at=self._state.now,
            ready_by=None,
        )
        self._state.apply(changes.WorkloadHolds(started))

    def _refused_offering(self, key: WorkloadKey, code: str) -> None:
        """The first offering of a purchase is out of stock: all of the purchase is cancelled."""
        purchase, now = self._purchases.pop(key, None), self._state.config.offerings
        if purchase is None or now is None:
            return
        first = purchase.node_claims[0]
        offer = (first.machine, first.zone, first.capacity_type)
        count = sum(
            (one.machine, one.zone, one.capacity_type) == offer for one in purchase.node_claims
        )
        refused = after_refusal(self._refused.get(offer), offer, count, self._state.now, code)
        self._refused[offer] = refused
        after = after_arrival(now, purchase)
        for claim in purchase.node_claims:
            after = after_return(after, claim)
        outages = tuple(map(outage_of, self._refused.values()))
        self._state.apply(changes.OfferingsSet(replace(after, outages=outages)))
        if key in self._state.running:
            leave(self._state, key, self._state.now, self._evicted.pop(key, None))

    def _orphaned(self, key: WorkloadKey) -> None:
        """A workload is gone while its NodeClaims are launching: others may take them over."""
        purchase, now = self._purchases.pop(key, None), self._state.config.offerings
        if purchase is None or now is None:
            return
        claims = tuple(replace(one, pods=(), taken_over=False) for one in purchase.node_claims)
        orphans = provisioning.PendingNodeClaims(
            workload=key, node_claims=claims, ready_by=purchase.ready_by
        )
        after = after_arrival(now, purchase)
        self._state.apply(changes.OfferingsSet(replace(after, orphaned=(*after.orphaned, orphans))))
        if key in self._state.running or key in self._state.waiting:
            self._state.apply(changes.WorkloadGone(key))

    def _orphans_joined(self) -> None:
        """NodeClaims that nothing waits for become nodes that are open to all."""
        now = self._state.config.offerings
        claims = (
            [claim for one in now.orphaned for claim in one.node_claims] if now is not None else []
        )
        if now is None or not claims:
            return
        left = without_node_claims(now.orphaned, {claim.node for claim in claims})
        self._state.apply(changes.OfferingsSet(replace(now, orphaned=left)))
        for claim in claims:
            self._join(claim, now)

    def _returned(self, name: NodeName, claim: Json) -> None:
        """A bought node is given back."""
        now = self._state.config.offerings
        if now is not None:
            self._state.apply(changes.NodeGone(name))
            self._state.apply(
                changes.OfferingsSet(after_return(now, _load(provisioning.NodeClaim, claim)))
            )

    def _join(self, claim: provisioning.NodeClaim, now: provisioning.Offerings) -> None:
        kind = (claim.pool, claim.machine, claim.zone, claim.capacity_type)
        for one in Catalogue(now).offerings:
            if (one.pool.name, one.machine.name, one.offer.zone, one.offer.capacity_type) == kind:
                offering = one
                break
        else:
            return  # it is not offered any more
        name = self._aliases.named(claim.node)
        labels = {**offering.labels, node.HOSTNAME: str(name)}
        joined = node.Node(
            name=name,
            labels=tuple(sorted(labels.items())),
            taints=offering.pool.taints,
            allocatable=offering.machine.allocatable,
        )
        self._state.apply(changes.NodeSet(joined))

    # --- what is asked ---------------------------------------------------------------------------

    def _cycle(self, now: int) -> Json:
        """Run one scheduling cycle and apply its plan; say what was decided and why others wait."""
        if now > self._state.now:
            self._state.apply(changes.TimePassed(Instant(now)))
        made = plan(self._state, Instant(now))
        for admit in made.admissions:
            if admit.purchase is not None:
                self._purchases[admit.workload] = admit.purchase
                self._aliases.add(admit.purchase)
        decided = self._aliases.public(canonical(made))
        apply_plan(self._state, made)
        self._evicted.update((stop.workload, stop) for stop in made.evictions_due)
        return decided | self._aliases.public(self._waits())

    def _settle(self, now: int) -> Json:
        """Run cycles until one changes nothing; victims leave at once."""
        made = dry_run(self._state, Instant(now), most_cycles=_MOST_CYCLES, checked=False)
        for one in made:
            for admit in one.admissions:
                if admit.purchase is not None:
                    self._aliases.add(admit.purchase)
        plans = self._aliases.public([canonical(one) for one in made])
        return {"settle": plans} | self._aliases.public(self._waits())

    def _limit(self, told: Json, owner: str, default_ms: int | None) -> Json:
        """Ask how long a job will run that perhaps does not say so."""
        limited = with_limit(
            load_workload(told), owner=owner, default_ms=default_ms, history=self._history
        )
        return {"limit": [limited.longest_ms, limited.longest_from]}

    def _repair(self, key: WorkloadKey, lost: list[NodeName], stays: Json) -> Json:
        """Ask for other nodes for the pods of a gang that lost some."""
        if key not in self._state.running:
            return {"not running": key}
        staying = {(pod_set, name): devices for pod_set, name, devices in stays}
        found = repair(self._state, key, lost, staying)
        if isinstance(found, workload.Admission):
            refuse_broken_repair(self._state, key, found)
        return self._aliases.public({"repair": dump(found)})

    def _replace(self, key: WorkloadKey, lost: list[NodeName]) -> Json:
        """Ask for new machines for the pods of a gang that lost nodes."""
        if key not in self._state.running:
            return {"not running": key}
        found = replacement(self._state, key, lost, {})
        if found is None:
            return {"replace": None}
        admission, purchase = found
        refuse_broken_repair(self._state, key, admission, purchase)
        self._aliases.add(purchase)
        return self._aliases.public({"replace": [dump(admission), dump(purchase)]})

    def _place(self, key: WorkloadKey, selectors: Json) -> Json:
        """Ask for nodes for a gang that has quota and no nodes yet."""
        if key not in self._state.running:
            return {"not running": key}
        labels = {name: tuple(map(tuple, pairs)) for name, pairs in selectors.items()}
        found = place_reserved(self._state, key, labels)
        if isinstance(found, workload.Admission):
            refuse_broken_repair(self._state, key, found)
        return self._aliases.public({"place": dump(found)})

    def _estimate(self) -> Json:
        """Ask when pending workloads would start."""
        found = estimates(self._state, self._state.now)
        return self._aliases.public({"estimate": {key: dump(found[key]) for key in sorted(found)}})

    def _waits(self) -> Json:
        """Return why everything pending waits, and the order of the queues."""
        told: dict[str, Json] = {}
        for why in explanations(self._state) if self._state.explains else ():
            told[why.workload] = [_fact(blocker) for blocker in why.blockers]
        found: dict[str, Json] = {"pending": {key: told[key] for key in sorted(told)}}
        orders = {name: [*pending(self._state, name)] for name in sorted(self._state.queues)}
        found["order"] = {name: keys for name, keys in orders.items() if len(keys) > 1}
        factors = {key: priority_factors(self._state, key) for key in sorted(self._state.waiting)}
        found["priority"] = {
            key: [one.priority, one.tier] for key, one in factors.items() if one is not None
        }
        return {part: value for part, value in found.items() if value}


class _Aliases:
    """Names of NodeClaims that do not depend on the version of the state, which real ones do."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def add(self, purchase: provisioning.Purchase) -> None:
        """Name the NodeClaims of a purchase after their workload."""
        for number, claim in enumerate(purchase.node_claims, start=1):
            self._known.setdefault(claim.node, f"{purchase.workload.replace('/', '-')}-{number}")

    def named(self, name: str) -> NodeName:
        """Return the name of a node."""
        return NodeName(self._known.get(name, name))

    def public(self, value: Json) -> Json:
        """Return the same JSON with those names."""
        if not self._known:
            return value
        if isinstance(value, dict):
            return {self.public(key): self.public(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.public(one) for one in value]
        return self._known.get(value, value) if isinstance(value, str) else value


def canonical(made: Plan) -> dict[str, Json]:
    """Return what a plan decides, in the words of the records and in the order of decision."""
    parts = {
        "admit": [dump(one) for one in made.admissions],
        "preempt": [dump(one) for one in made.preemptions],
        "await": [dump(one) for one in made.awaits],
        "evict": [dump(one) for one in made.evictions_due],
        "reserve": [dump(one) for one in made.reservations],
    }
    for admit in parts["admit"]:
        admit.get("quota_charges", []).sort()
    return {part: value for part, value in parts.items() if value}


Begin = Callable[[Json, int], Callable[[list[Json]], None]]


@contextmanager
def overheard(begin: Begin) -> Iterator[None]:
    """Tell of every engine that is made meanwhile: `begin`, and what that returns of each step.

    Only for harvesting cases from other tests, and only with the interpreted engine.
    """
    notes: dict[int, tuple[ClusterState, Callable[[list[Json]], None]]] = {}
    aliases = _Aliases()
    make = ClusterState.__init__

    def made(state: ClusterState, *given: Any, **named: Any) -> None:
        make(state, *given, **named)
        note = begin(dump(state.policy), state.now)
        notes[id(state)] = state, note

        def hear(change: changes.Change) -> None:
            (value,) = (getattr(change, field) for field in change.__struct_fields__)
            note(aliases.public([_VERB_OF[type(change)], dump(value)]))

        state.listener = hear

    def applied(state: ClusterState, decided: Plan) -> bool:
        for admit in decided.admissions:
            if admit.purchase is not None:
                aliases.add(admit.purchase)
        if id(state) in notes:
            notes[id(state)][1](["cycle", decided.now])
        return apply_plan(state, decided)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(ClusterState, "__init__", made))
        for module in [*sys.modules.values()]:
            name = getattr(module, "__name__", "")
            if name != __name__ and getattr(module, "apply_plan", None) is apply_plan:
                stack.enter_context(mock.patch.object(module, "apply_plan", applied))
        yield


# --- values as JSON, and back --------------------------------------------------------------------


def dump(value: Any) -> Json:
    """Return a value of the engine in the words of the records; what is as usual is left out."""
    if isinstance(value, msgspec.Struct):
        found = {}
        for field, word, usual, is_text in _FIELDS[type(value)]:
            held = getattr(value, field)
            if usual is _NO_DEFAULT or held != usual:
                found[word] = _essence(held) if is_text else dump(held)
        return found
    if isinstance(value, tuple | list):
        return [dump(one) for one in value]
    return value


def load_workload(value: Json) -> workload.Workload:
    """Return the workload that is recorded as `value`."""
    loaded: workload.Workload = _load(workload.Workload, value)
    return loaded


def _fact(blocker: facts.Blocker) -> Json:
    return [str(blocker.__struct_config__.tag), dump(blocker)]


def _essence(text: str) -> str:
    """Return the words of a free text that are values or names rather than wording.

    >>> _essence("there is no QOS gold-1; at most 4 nodes of zone=a")
    '4 gold-1 zone=a'
    """
    words = (word.strip(".,;:()`'\"") for word in text.split())
    return " ".join(sorted(word for word in words if re.search(r"[0-9/=$]", word)))


def _field_table(kind: type[msgspec.Struct], words: str) -> list[tuple[str, str, Any, bool]]:
    usual = {one.name: one for one in msgspec.structs.fields(kind)}
    table: list[tuple[str, str, Any, bool]] = []
    for pair in words.split():
        field, _, word = pair.removeprefix("~").removeprefix("-").partition(":")
        one = usual.pop(field)
        if pair.startswith("-"):
            continue
        default = one.default if one.default is not msgspec.NODEFAULT else _NO_DEFAULT
        table.append((field, word or field, default, pair.startswith("~")))
    assert not usual, f"{kind.__name__} has fields without a recorded word: {', '.join(usual)}"
    return table


_NO_DEFAULT = object()
_FIELDS = {kind: _field_table(kind, words) for kind, words in _WORDS.items()}
_Loader = Callable[[Json], Any]
_LOADERS: dict[Any, _Loader] = {}


def _load(kind: Any, value: Json) -> Any:
    """Return the value of the engine that is recorded as `value`."""
    return _loader(kind)(value)


def _load_fields(kind: type[msgspec.Struct], value: Json) -> dict[str, Any]:
    """Return some fields of a value, under the engine's names."""
    hints = typing.get_type_hints(kind)
    fields = {word: field for field, word, _, _ in _FIELDS[kind]}
    return {fields[word]: _load(hints[fields[word]], one) for word, one in value.items()}


def _loader(kind: Any) -> _Loader:
    """Return what reads values of a type; made once for each."""
    loader = _LOADERS.get(kind)
    if loader is None:
        loader = _LOADERS[kind] = _new_loader(kind)
    return loader


def _new_loader(kind: Any) -> _Loader:
    if isinstance(kind, typing.NewType):
        return _loader(kind.__supertype__)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (only,) = (_loader(part) for part in parts if part is not type(None))
        return lambda value: None if value is None else only(value)
    if origin is tuple and parts[-1] is Ellipsis:
        each = _loader(parts[0])
        return lambda value: tuple([each(one) for one in value])
    if origin is tuple:
        several = [_loader(part) for part in parts]
        return lambda value: tuple([load(v) for load, v in zip(several, value, strict=True)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct_loader(kind)
    return lambda value: value


def _struct_loader(kind: type[msgspec.Struct]) -> _Loader:
    hints = typing.get_type_hints(kind)
    fields = {word: (field, _loader(hints[field])) for field, word, _, _ in _FIELDS[kind]}

    def load(value: Json) -> Any:
        given = {}
        for word, one in value.items():
            field, loader = fields[word]
            given[field] = loader(one)
        return kind(**given)

    return load


def _told(change: type[Any]) -> _Loader:
    """Return what reads the one value that a change tells."""
    (hint,) = typing.get_type_hints(change).values()
    return _loader(hint)


_READ = {change: _told(change) for change in _CHANGES.values()}
