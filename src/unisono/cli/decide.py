"""`unisono decide`: manifests in, decision out. Nothing is changed anywhere.

Reads files, hands their bytes to `kinds`, rehearses on the engine, prints the answer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from unisono.cli.connection import add_filenames
from unisono.cli.help_format import HelpFormat
from unisono.cli.scripts import with_scripts
from unisono.cli.tables import paragraph, table
from unisono.cli.times import local_times
from unisono.engine.cluster import restore
from unisono.engine.cycle import Decides, plan
from unisono.engine.diagnosis import diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.dry_run import MOST_CYCLES, dry_run, one_cycle
from unisono.engine.estimates import estimates
from unisono.engine.explain.diagnosis import causes, headline, message_with, way_sentences
from unisono.engine.explain.formatting import format_instant
from unisono.engine.explain.messages import reason_of, stage_of
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.diagnosis import Diagnosis
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.explanation import Expected, Explanation, Planned
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Admit, Plan, evictions, shrinks
from unisono.engine.model.provisioning import MICRO, Purchase
from unisono.engine.model.workload import Admission, PodSetAssignment, Workload
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot
from unisono.kinds.notes import Finding
from unisono.kinds.snapshot.build import World, read_world
from unisono.provision.catalog.offers import with_offerings
from unisono.runtime import clock
from unisono.runtime.manifest_files import files_of
from unisono.runtime.memory import calm_collector
from unisono.runtime.recording import recorder

EPILOG = """\
examples:
  unisono decide -f queues.yaml -f job.yaml       one cycle: what starts, is evicted, stays pending
  unisono decide -f cluster/ --until-stable       repeat until nothing changes any more
  unisono decide -f all.yaml -o json              for scripts; the fields are documented
  kubectl get cq,lq,rf,wl,jobs -A -o yaml | unisono decide -f -

Workloads with status.admission (or running jobs) count as running. Without Node manifests quota
alone decides. Exit code 0: decided; 2: a manifest is wrong, each problem on one line of stderr.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono decide",
        description="Say what would be admitted and evicted, and why the rest stays pending.",
        epilog=EPILOG,
        formatter_class=HelpFormat,
    )
    add_filenames(made)
    made.add_argument(
        "--until-stable",
        action="store_true",
        help="repeat cycles until one changes nothing; evicted workloads leave and queue again",
    )
    made.add_argument("--policy", metavar="FILE", help="a Policy or a Kueue Configuration")
    made.add_argument(
        "--now", metavar="TIME", help="the time to decide at, such as 2026-01-01T12:00:00Z"
    )
    made.add_argument(
        "--record", type=Path, metavar="DIR", help="record the decisions for `unisono replay`"
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="output format (default: text)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Decide and print."""
    now = clock.now() if arguments.now is None else instant(arguments.now)
    files = [file for name in arguments.filename for file in files_of(name, takes_scripts=True)]
    if arguments.policy is not None:
        files.extend(files_of(arguments.policy))
    world = read_world(with_scripts(files, now), now=now)
    if world.problems:
        raise InvalidManifest("", "\n".join(problem.line() for problem in world.problems))
    decides = plan if arguments.record is None else recorder(arguments.record).plan
    answer = decide(world, now, until_stable=arguments.until_stable, decides=decides)
    sys.stdout.write(_show(answer, arguments.output, now))
    return 0


def decide(world: World, now: Instant, *, until_stable: bool, decides: Decides = plan) -> Decision:
    """Rehearse one cycle, or all until nothing changes, on what the manifests describe."""
    state = restore(with_offerings(world.snapshot, world.pools, world.overlays))
    calm_collector()
    if until_stable:
        plans = dry_run(state, now, decides=decides)
    else:
        plans = [one_cycle(state, now, decides=decides)[0]]
    warnings = list(world.warnings)
    if len(plans) >= MOST_CYCLES:
        message = f"workloads still preempt each other after {MOST_CYCLES} cycles; stopped there"
        warnings.append(Finding(file="", document=0, path="--until-stable", message=message))
    return decision(state, plans, warnings, now=now)


def instant(text: str) -> Instant:
    """Read a point in time as Kubernetes writes it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidManifest("--now", f"{text!r} is not a time like 2026-01-01T12:00:00Z") from (
            error
        )
    if moment.tzinfo is None:
        raise InvalidManifest("--now", f"{text!r} has no time zone; end it in Z for UTC")
    return Instant(round(moment.timestamp() * 1000))


def _show(answer: Decision, form: str, now: Instant) -> str:
    if form == "text":
        return render(answer, now)
    plain = msgspec.to_builtins(answer)
    if form == "yaml":
        import yaml  # only this form needs it here, and it is slow to import

        return str(yaml.safe_dump(plain, sort_keys=True, allow_unicode=True))
    return msgspec.json.format(msgspec.json.encode(plain, order="sorted"), indent=2).decode() + "\n"


# ---- what is decided, as one value ---------------------------------------------------------------
# The field names are part of the command's contract (docs/reference/decide.md).

# No scheduling cycle has to be short here, so more get an estimate than on a running cluster.
# Objects of copied clusters: about two seconds for all root causes together.
DIAGNOSED_OBJECTS = 200_000
MOST_ESTIMATES = 1000


class PodSetDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One pod set of an admitted workload."""

    name: str
    count: int
    flavors: dict[str, str]
    nodes: dict[str, int] | msgspec.UnsetType = msgspec.UNSET  # absent if placement was skipped
    # By node, of pods that share GPUs: the device of each.
    devices: dict[str, list[int]] | msgspec.UnsetType = msgspec.UNSET


class Admitted(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload that starts."""

    workload: str
    queue: str
    cycle: int
    pod_sets: list[PodSetDecision]


class Evicted(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that is evicted; `by` is the preemptor, null if there is none."""

    workload: str
    reason: str
    by: str | None
    cycle: int


class Shrunk(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload that loses some of its pods and keeps running; `by` is the preemptor."""

    workload: str
    reason: str
    by: str
    cycle: int
    pod_sets: list[PodSetDecision]


class Pending(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload that waits, and why."""

    workload: str
    queue: str | None
    stage: str
    reason: str
    message: str
    estimated_start: str | None = None
    verdict: str = "unknown"  # of the diagnosis: later, never, starts-now
    root_cause: str = ""  # what has to happen first, as a sentence; empty: not looked for
    in_the_way: list[str] = []
    ways: list[str] = []  # every flavor that was tried, and why not


class Warned(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a manifest that works, but perhaps not as its author thinks."""

    file: str
    document: int
    path: str
    message: str


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation: the workload starts by then, if running jobs keep their time limits."""

    workload: str
    start: str
    end: str  # by its own limit


class NodeClaims(msgspec.Struct, frozen=True, kw_only=True, rename={"workload": "for"}):
    """Machines that are bought for a workload: alike, and so many."""

    pool: str
    type: str
    zone: str
    capacityType: str  # noqa: N815  # as the contract writes it
    count: int
    pricePerHour: float  # noqa: N815  # of all of them
    workload: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole answer."""

    cycles: int
    admitted: list[Admitted]
    evicted: list[Evicted]
    shrunk: list[Shrunk]
    pending: list[Pending]
    warnings: list[Warned]
    reservations: list[Reservation] = []
    node_claims: list[NodeClaims] = []


def decision(
    state: ClusterState, plans: list[Plan], warnings: list[Finding], *, now: Instant
) -> Decision:
    """Gather plans that were carried out on a state into one answer."""
    expected = estimates(state, now, most=MOST_ESTIMATES)
    numbered = list(enumerate(plans, start=1))
    effective = [number for number, made in numbered if _acts(made)]
    return Decision(
        cycles=max(effective, default=1),
        admitted=[
            _admitted(admit, number) for number, made in numbered for admit in made.admissions
        ],
        evicted=[
            Evicted(workload=out.workload, reason=out.reason, by=out.by, cycle=number)
            for number, made in numbered
            for out in evictions(made)
        ],
        shrunk=[
            Shrunk(
                workload=told.workload,
                reason=told.reason,
                by=told.by,
                cycle=number,
                pod_sets=_pod_sets(told.keeps),
            )
            for number, made in numbered
            for told in shrinks(made)
        ],
        pending=list(_all_pending(state, expected)),
        reservations=[
            Reservation(
                workload=date.workload,
                start=format_instant(date.start),
                end=format_instant(date.end),
            )
            for made in plans[-1:]
            for date in made.reservations
            if date.workload in state.waiting
        ],
        node_claims=[
            claims
            for made in plans
            for admit in made.admissions
            if admit.purchase is not None
            for claims in _claims(admit.purchase)
        ],
        warnings=[
            Warned(file=w.file, document=w.document, path=w.path, message=w.message)
            for w in warnings
        ],
    )


def _claims(purchase: Purchase) -> list[NodeClaims]:
    """Count machines that are alike."""
    counts: dict[tuple[str, str, str, str], list[int]] = {}
    for node_claim in purchase.node_claims:
        alike = (node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type)
        counts.setdefault(alike, []).append(node_claim.price_micro)
    return [
        NodeClaims(
            pool=pool,
            type=machine,
            zone=zone,
            capacityType=sold,
            count=len(prices),
            pricePerHour=sum(prices) / MICRO,
            workload=purchase.workload,
        )
        for (pool, machine, zone, sold), prices in counts.items()
    ]


def _acts(made: Plan) -> bool:
    """Say whether a plan starts, evicts or shrinks a workload."""
    return bool(made.admissions or evictions(made) or shrinks(made))


def _pod_sets(admission: Admission) -> list[PodSetDecision]:
    return [
        PodSetDecision(
            name=assigned.name,
            count=assigned.count,
            flavors={str(resource): str(flavor) for resource, flavor in assigned.flavors},
            nodes={str(name): pods for name, pods in assigned.nodes} or msgspec.UNSET,
            devices=_devices(assigned) or msgspec.UNSET,
        )
        for assigned in admission.pod_sets
    ]


def _devices(assigned: PodSetAssignment) -> dict[str, list[int]]:
    """Return the devices of pods that share GPUs, by node."""
    found: dict[str, list[int]] = {}
    before = 0
    for name, pods in assigned.nodes if assigned.devices else ():
        found.setdefault(str(name), []).extend(assigned.devices[before : before + pods])
        before += pods
    return found


def _admitted(admit: Admit, cycle: int) -> Admitted:
    return Admitted(
        workload=admit.workload,
        queue=admit.admission.queue,
        cycle=cycle,
        pod_sets=_pod_sets(admit.admission),
    )


def _all_pending(
    state: ClusterState, expected: Mapping[WorkloadKey, Expected]
) -> Iterator[Pending]:
    """Describe what is pending; the root cause is looked for within a budget for all of them."""
    recorded, budget = snapshot(state), Budget(objects=DIAGNOSED_OBJECTS)
    for why in explanations(state):
        found = diagnose(recorded, why.workload, budget=budget)
        workload = state.waiting[why.workload].workload
        yield _pending(why, workload, expected.get(why.workload), found)


def _pending(
    why: Explanation, workload: Workload, expected: Expected | None, found: Diagnosis | None
) -> Pending:
    dates = (fact for fact in why.blockers if isinstance(fact, Planned))
    fact: Planned | Expected | None = next(dates, expected)
    return Pending(
        workload=why.workload,
        queue=why.queue,
        stage=stage_of(why),
        reason=reason_of(why, workload),
        message=message_with(why, found),
        estimated_start=format_instant(fact.start) if fact is not None else None,
        verdict=found.verdict if found is not None else "unknown",
        root_cause=headline(found) if found is not None else "",
        in_the_way=causes(found) if found is not None else [],
        ways=way_sentences(found) if found is not None else [],
    )


# ---- what is decided, as text --------------------------------------------------------------------
NODES_SHOWN = 8  # of one pod set, before a line gets too long to read


def render(decision: Decision, now: Instant) -> str:
    """Return the whole decision as text, with times as people read them."""
    parts = [
        _warnings_text(decision),
        _evicted_text(decision.evicted),
        _shrunk_text(decision.shrunk),
    ]
    parts += [_admitted_text(decision.admitted), _bought_text(decision.node_claims)]
    parts.append(_pending_text(decision.pending, now))
    changed = decision.admitted or decision.evicted or decision.shrunk
    if not changed and not decision.pending:
        parts.append("Nothing is pending, and nothing has to change.")
    parts.append(_closing_text(decision))
    return "\n\n".join(part for part in parts if part) + "\n"


def _warnings_text(decision: Decision) -> str:
    lines = []
    for warning in decision.warnings:
        place = f"{warning.file}: document {warning.document}" if warning.document else warning.file
        where = f"{place}: {warning.path}" if warning.path else place
        lines.append(f"warning: {where}: {warning.message}")
    return "\n".join(lines)


def _admitted_text(admitted: list[Admitted]) -> str:
    if not admitted:
        return ""
    rows = [
        [item.cycle, item.workload, item.queue, pod_set.name, pod_set.count, _flavors_text(pod_set)]
        for item in admitted
        for pod_set in item.pod_sets
    ]
    headings = ["CYCLE", "WORKLOAD", "QUEUE", "POD SET", "PODS", "FLAVORS"]
    placed = [
        [item.workload, pod_set.name, _nodes_text(pod_set.nodes, pod_set.devices or {})]
        for item in admitted
        for pod_set in item.pod_sets
        if pod_set.nodes is not msgspec.UNSET
    ]
    text = "Admitted:\n" + table(headings, rows)
    if placed:
        text += "\n\nPlaced:\n" + table(["WORKLOAD", "POD SET", "NODES"], placed)
    return text


def _bought_text(claims: list[NodeClaims]) -> str:
    """List the machines that are bought first, and their price."""
    if not claims:
        return ""
    headings = ["WORKLOAD", "POOL", "MACHINES", "ZONE", "CAPACITY", "US$/H"]
    rows = [
        [
            one.workload,
            one.pool,
            f"{one.count} × {one.type}",
            one.zone,
            one.capacityType,
            f"{one.pricePerHour:.4f}".rstrip("0").rstrip("."),
        ]
        for one in claims
    ]
    return "Bought before it starts:\n" + table(headings, rows)


def _nodes_text(nodes: dict[str, int], devices: dict[str, list[int]]) -> str:
    """Write pods per node; a large gang shows its first nodes and how many more there are."""
    shown = [
        (name if pods == 1 else f"{name}:{pods}") + _gpus_text(devices.get(name, []))
        for name, pods in nodes.items()
    ]
    if len(shown) <= NODES_SHOWN:
        return " ".join(shown)
    return " ".join(shown[:NODES_SHOWN]) + f" and {len(shown) - NODES_SHOWN} more"


def _gpus_text(devices: list[int]) -> str:
    """Write which GPUs of a node pods share."""
    numbers = ",".join(str(device) for device in sorted(set(devices)))
    return f"(gpu {numbers})" if devices else ""


def _flavors_text(pod_set: PodSetDecision) -> str:
    by_flavor: dict[str, list[str]] = {}
    for resource, flavor in pod_set.flavors.items():
        by_flavor.setdefault(flavor, []).append(resource)
    return " ".join(f"{flavor}({','.join(names)})" for flavor, names in by_flavor.items())


def _evicted_text(evicted: list[Evicted]) -> str:
    if not evicted:
        return ""
    rows = [[item.cycle, item.workload, item.reason, item.by] for item in evicted]
    return "Evicted:\n" + table(["CYCLE", "WORKLOAD", "REASON", "FOR"], rows)


def _shrunk_text(shrunk: list[Shrunk]) -> str:
    if not shrunk:
        return ""
    rows = [
        [item.cycle, item.workload, pod_set.name, pod_set.count, item.reason, item.by]
        for item in shrunk
        for pod_set in item.pod_sets
    ]
    headings = ["CYCLE", "WORKLOAD", "POD SET", "PODS LEFT", "REASON", "FOR"]
    return "Shrunk:\n" + table(headings, rows)


def _pending_text(pending: list[Pending], now: Instant) -> str:
    if not pending:
        return ""

    def told(sentence: str, indent: str) -> str:
        return paragraph(local_times(sentence, now / 1000), indent=indent)

    lines = ["Pending:"]
    for item in pending:
        queue = f" in {item.queue}" if item.queue else ""
        lines.append(f"  {item.workload}{queue}: {item.reason} ({item.stage})")
        if item.root_cause and len(item.ways) > 1:
            lines.append(told(item.root_cause, "      "))
            lines += [told(way, "      - ") for way in item.ways]
        else:
            lines.append(told(item.message, "      "))
        if item.estimated_start is not None:
            lines.append(told(f"estimated start: {item.estimated_start}", "      "))
    return "\n".join(lines)


def _closing_text(decision: Decision) -> str:
    cycles = "1 cycle" if decision.cycles == 1 else f"{decision.cycles} cycles"
    shrunk = f"{len(decision.shrunk)} shrunk, " if decision.shrunk else ""
    return (
        f"{len(decision.admitted)} admitted, {len(decision.evicted)} evicted, {shrunk}"
        f"{len(decision.pending)} pending after {cycles}."
    )
