"""Do accounts, QOS and users stay within their limits? (spec priority §2 and §7)

Added up from admitted workloads and plan alone: workloads and TRES of every account with its
subtree, of every QOS, and of every user in a QOS. Limits of one workload, and limits on past usage,
are not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.multifactor import ROOT, Limits, MultifactorRules, TresAmounts
from unisono.engine.model.names import namespace_of
from unisono.engine.model.plan import Plan
from unisono.engine.model.workload import Admission, Workload

_Counts = dict[tuple[str, str], int]  # by owner and TRES


def check_limits(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every admission against the limits above it, in the order of the plan."""
    rules = index.policy.multifactor
    if rules is None or not plan.admissions:
        return
    counts: _Counts = {}
    replaced = {admit.replaces for admit in plan.admissions}
    for admitted in index.admitted_workloads.values():
        if admitted.workload.key not in replaced:
            _count(counts, rules, admitted.workload, admitted.admission)
    for admit in plan.admissions:
        workload = index.waiting.get(admit.workload)
        if workload is None:
            continue
        if workload.submit_options.priority == 0:
            message = "it is held: its priority is 0"
            yield Violation(rule="not-queueable", workload=workload.key, message=message)
        _count(counts, rules, workload, admit.admission)
        wanted = {"jobs": 1, **_tres(workload, admit.admission)}
        for owner, tres_name, limit in _limits(rules, workload):
            used = counts.get((owner, tres_name), 0)
            if wanted.get(tres_name) and used > limit:
                message = f"{owner} would have {used} of {limit} {tres_name}"
                yield Violation(rule="over-limit", workload=workload.key, message=message)


def _count(
    counts: _Counts, rules: MultifactorRules, workload: Workload, admission: Admission
) -> None:
    for tres_name, amount in {"jobs": 1, **_tres(workload, admission)}.items():
        for owner in dict.fromkeys(owner for owner, *_ in _owners(rules, workload)):
            counts[owner, tres_name] = counts.get((owner, tres_name), 0) + amount


def _limits(rules: MultifactorRules, workload: Workload) -> Iterator[tuple[str, str, int]]:
    for owner, jobs, tres in _owners(rules, workload):
        if jobs is not None:
            yield owner, "jobs", jobs
        for name, limit in tres:
            if name.startswith("gres/") or name in ("cpu", "mem"):
                yield owner, name, limit


def _owners(
    rules: MultifactorRules, workload: Workload
) -> Iterator[tuple[str, int | None, TresAmounts]]:
    """Yield the owners of limits that a workload counts for, and these limits."""
    accounts = {one.account: one for one in rules.associations if one.user is None}
    account = _account(rules, workload, set(accounts) | {ROOT})
    partition = next(
        (one for one in rules.partitions if one.name == workload.submit_options.partition), None
    )
    for qos in rules.qos:
        is_its = qos.name == _qos_of(rules, workload)
        if is_its or (partition is not None and partition.qos == qos.name):
            yield f"QOS {qos.name}", qos.limits.group_jobs, qos.limits.group_tres
            if is_its and partition is None and (account or workload.submit_options.user):
                user = f"user {workload.submit_options.user} in QOS {qos.name}"
                yield user, qos.limits.jobs_per_user, qos.limits.tres_per_user
    seen: set[str] = set()
    while account and account not in seen:
        seen.add(account)
        limits = accounts[account].limits if account in accounts else Limits()
        yield f"account {account}", limits.group_jobs, limits.group_tres
        parent = accounts[account].parent if account in accounts else ROOT
        account = parent if account != ROOT else ""


def _account(rules: MultifactorRules, workload: Workload, known: set[str]) -> str:
    of, namespace = dict(rules.accounts_of), namespace_of(workload.queue)
    if workload.submit_options.account:
        return workload.submit_options.account if workload.submit_options.account in known else ""
    for name in (of.get(workload.queue), of.get(namespace)):
        if name:
            return name if name in known else ""
    if namespace in known:
        return namespace
    places = [one for one in rules.associations if one.user == workload.submit_options.user]
    marked = [one for one in places if one.is_default]
    if workload.submit_options.user and (marked or len(places) == 1):
        home = (marked or places)[0].account
        return home if home in known else ""
    return rules.default_account if rules.default_account in known else ""


def _qos_of(rules: MultifactorRules, workload: Workload) -> str:
    """Return its QOS; the default of an association is not looked up here."""
    if workload.submit_options.qos:
        return workload.submit_options.qos
    return "" if any(one.default_qos for one in rules.associations) else rules.default_qos


def _tres(workload: Workload, admission: Admission) -> dict[str, int]:
    """Return the TRES of the pods that still have to run, in thousandths."""
    granted = {one.name: one.count for one in admission.pod_sets}
    done = dict(workload.reclaimable)
    total: dict[str, int] = {}
    for one in workload.pod_sets:
        pods = max(0, granted.get(one.name, one.count) - done.get(one.name, 0))
        for resource, amount in one.requests:
            if resource == "cpu":
                name, each = "cpu", amount
            elif resource == "memory":
                name, each = "mem", -(-amount * 1000 // 2**20)
            elif resource == "gpu" or resource.endswith("/gpu") or "/mig-" in resource:
                name, each = "gres/gpu", amount * 1000
            else:
                name, each = f"gres/{resource.rpartition('/')[2]}", amount * 1000
            total[name] = total.get(name, 0) + each * pods
    return total
