"""Performs Kueue's admission check `kueue.x-k8s.io/provisioning-request`: asks for nodes, waits.

    QuotaReserved ──▶ a ProvisioningRequest for the whole gang
      Accepted                              Pending, with what the autoscaler says
      Provisioned                           Ready; its pods are told to use those nodes
      Failed, BookingExpired, too late      Retry after a growing pause, at last Rejected
      CapacityRevoked                       Rejected

A workload that loses its quota gives its request up. Attempts are counted in the check's
`retryCount`, by the eviction that follows each, so that a crash forgets nothing. Spec provisioning
§5.13.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Literal

from unisono.control import names
from unisono.control.actions import Action, Again, Create, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.admission.checks import states_of
from unisono.control.admission.purchases import UNDER_WAY, is_holding, purchase_of
from unisono.control.conditions import find, is_true, seconds, timestamp, with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.view import View
from unisono.kinds.digits import is_digits, whole_number
from unisono.kinds.policy.provisioning import BuyingTimes
from unisono.kinds.scalar import duration_ms
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision.request_objects import (
    LONGEST_RUN,
    MAX_RUN,
    QUEUED,
    PodSets,
    RequestConfig,
    config_of,
    is_ours,
    parameters_of,
    request_name,
    request_of,
    sets_asked_for,
    templates_of,
    updates_of,
)

BY_OWNER = "workload"
TIMEOUT = "unisono.dev/provisioning-timeout"
_FOREVER = float("inf")
State = Literal["Pending", "Ready", "Retry", "Rejected"]


def owner_of(request: Json) -> Iterable[str]:
    """Index requests by the workload that they are for, as `namespace/name`."""
    return (f"{key.namespace}/{key.name}" for key in owner_key(request, names.WORKLOAD))


class ProvisioningRequests:
    """Asks an autoscaler for the nodes of one workload."""

    name = "provisioning-requests"
    watches: Sequence[Kind] = (
        names.WORKLOAD,
        names.PROVISIONING_REQUEST,
        names.ADMISSION_CHECK,
        names.REQUEST_CONFIG,
    )

    def __init__(self, times: BuyingTimes) -> None:
        """Take how long nodes may take."""
        self._times = times

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload that has checks; that of a request; all of them if a check changes."""
        if kind == names.WORKLOAD:
            if states_of(obj):
                yield own_key(obj)
        elif kind == names.PROVISIONING_REQUEST:
            yield from owner_key(obj, names.WORKLOAD)
        else:
            yield from (own_key(one) for one in view.all(names.WORKLOAD) if states_of(one))

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take the checks of one workload a step further."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None or "deletionTimestamp" in workload["metadata"]:
            return  # its requests go with it
        requests = view.by(names.PROVISIONING_REQUEST, BY_OWNER, f"{key.namespace}/{key.name}")
        if is_true((workload.get("status") or {}).get("conditions"), "Finished"):
            yield from _withdraw(requests)
            return
        if not is_holding(workload):
            yield from self._without_quota(workload, requests, view, now)
            return
        states = states_of(workload)
        changed: list[Json] = []
        for state in states:
            check = view.get(names.ADMISSION_CHECK, state["name"])
            if check is None or not is_ours(check) or state["state"] in ("Retry", "Rejected"):
                changed.append(state)
            else:
                changed.append((yield from self._perform(workload, state, check, view, now)))
        if changed != states:
            yield Patch(Ref.to(workload), {"status": {"admissionChecks": changed}}, "status")
            for old, new in zip(states, changed, strict=True):
                if old["state"] != new["state"]:
                    planned = f"{new['name']} is {new['state']}: {new['message']}"
                    yield Note(Ref.to(workload), "AdmissionCheckUpdated", planned)

    # ---- with quota --------------------------------------------------------------------------

    def _perform(
        self, workload: Json, state: Json, check: Json, view: View, now: float
    ) -> Generator[Action, Any, Json]:
        """Ask, or see what became of it; return what the check says then."""
        config = config_of(check, view)
        if isinstance(config, str):
            return _with_state(state, "Pending", f"the check is not active: {config}", now)
        sets = sets_asked_for(workload, config, view)
        if not sets:
            return _with_state(state, "Ready", "the provisioning request is not needed", now)
        timeout = self._timeout(workload, config)
        parameters = parameters_of(workload, config, timeout)
        wrong = _wrong_with(config, parameters)
        if wrong:
            return _with_state(state, "Rejected", wrong, now)
        attempt = int(state.get("retryCount") or 0) + 1
        metadata = workload["metadata"]
        name = request_name(metadata["name"], state["name"], attempt)
        request = view.get(names.PROVISIONING_REQUEST, name, metadata["namespace"])
        if request is not None:
            judged = _judged(workload, request, config, sets, state, attempt, now)
            due = _due(judged, request, workload, timeout)
            if judged["state"] in ("Pending", "Ready") and now >= due:
                text = "the nodes did not come in time"
                return _failed(judged, config, attempt, text, now)
            if due < _FOREVER:
                yield Again(due)
            return judged
        if state["state"] == "Ready":
            return state  # it was used, and then deleted
        for template in templates_of(workload, name, sets):
            yield Create(template)
        yield Create(request_of(workload, name, config, sets, parameters))
        planned = f'Created ProvisioningRequest: "{name}"'
        yield Note(Ref.to(workload), "ProvisioningRequestCreated", planned)
        return _with_state(state, "Pending", f"asks for nodes: ProvisioningRequest {name}", now)

    def _timeout(self, workload: Json, config: RequestConfig) -> float:
        """Return how long a request may take; a queue of the cloud may take days."""
        text = (workload["metadata"].get("annotations") or {}).get(TIMEOUT, "")
        try:
            if text:
                return _FOREVER if text == "Never" else duration_ms(text) / 1000
        except ValueError:
            pass  # as if nothing were said
        is_queued = config.provisioning_class_name == QUEUED
        return _FOREVER if is_queued else self._times.gang

    # ---- without -----------------------------------------------------------------------------

    def _without_quota(
        self, workload: Json, requests: Sequence[Json], view: View, now: float
    ) -> Steps:
        """Give requests up; one that failed first counts."""
        if (workload.get("status") or {}).get("admission"):
            yield from _withdraw(requests)
            return
        found = purchase_of(workload)
        states = states_of(workload)
        by_name = {one["metadata"]["name"]: one for one in requests}
        for place, state in enumerate(states):
            attempt = int(state.get("retryCount") or 0) + 1
            name = request_name(workload["metadata"]["name"], state["name"], attempt)
            request = by_name.get(name)
            check = view.get(names.ADMISSION_CHECK, state["name"])
            config = config_of(check, view) if check is not None else ""
            if request is None or isinstance(config, str):
                continue
            failure = _failure(request)
            if failure is None:
                if found is not None and found[0] == "TimedOut":
                    return  # the autoscaler is about to say so
                continue
            after = _failed(state, config, attempt, failure, now)
            yield from _count(workload, [*states[:place], after, *states[place + 1 :]], after, now)
            return
        yield from _withdraw(requests)


def _count(workload: Json, states: list[Json], after: Json, now: float) -> Steps:
    """Write down an attempt that failed when the workload had lost its quota already."""
    is_over = after["state"] == "Rejected"
    attempts = (after.get("retryCount") or 0) + 1  # no eviction will count this one
    counted = {**after, "state": "Pending", "retryCount": attempts}
    pending = [counted if one is after else one for one in states]
    status: Json = {"admissionChecks": pending}
    if not is_over:
        at = timestamp(now + after["requeueAfterSeconds"])
        count = (workload["status"].get("requeueState") or {}).get("count")
        status["requeueState"] = {"requeueAt": at, **({"count": count} if count else {})}
    else:
        status["conditions"] = with_condition(
            workload["status"].get("conditions"),
            "Evicted",
            "True",
            "DeactivatedDueToAdmissionCheck",
            after["message"],
            now=now,
        )
    patched = yield Patch(Ref.to(workload), {"status": status}, "status")
    if is_over:
        yield Patch(Ref.to(patched), {"spec": {"active": False}}, exact=False)
        yield Note(Ref.to(patched), "AdmissionCheckRejected", after["message"], "Warning")


def _withdraw(requests: Sequence[Json]) -> Steps:
    """Delete requests with their templates: their nodes are not needed."""
    for request in requests:
        if "deletionTimestamp" in request["metadata"]:
            continue
        for one in request["spec"].get("podSets") or ():
            template = Ref(
                Kind("v1", "PodTemplate"),
                request["metadata"]["namespace"],
                one["podTemplateRef"]["name"],
            )
            yield Delete(template)
        yield Delete(Ref.to(request))


def _judged(
    workload: Json,
    request: Json,
    config: RequestConfig,
    sets: Sequence[PodSets],
    state: Json,
    attempt: int,
    now: float,
) -> Json:
    """Return what a check says by what its request says."""
    conditions = (request.get("status") or {}).get("conditions")
    is_admitted = is_true(workload["status"].get("conditions"), "Admitted")
    failure = _failure(request)
    revoked = find(conditions, "CapacityRevoked")
    if is_true(conditions, "Failed") or (failure is not None and not is_admitted):
        return state if is_admitted else _failed(state, config, attempt, failure or "", now)
    if revoked is not None and revoked["status"] == "True":
        return _with_state(state, "Rejected", revoked["message"], now)
    provisioned = find(conditions, "Provisioned")
    if provisioned is not None and provisioned["status"] == "True":
        made = _with_state(state, "Ready", provisioned["message"], now)
        return {**made, "podSetUpdates": updates_of(request, config, sets)}
    if provisioned is not None and is_true(conditions, "Accepted"):
        return _with_state(state, "Pending", provisioned["message"], now)
    return state


def _failure(request: Json) -> str | None:
    """Return why a request brought nothing; None if no condition says so."""
    conditions = (request.get("status") or {}).get("conditions")
    for kind in ("Failed", "BookingExpired"):
        found = find(conditions, kind)
        if found is not None and found["status"] == "True":
            return str(found["message"] or found["reason"])
    return None


def _failed(state: Json, config: RequestConfig, attempt: int, text: str, now: float) -> Json:
    """Return what a check says after an attempt that failed."""
    retry = config.retry_strategy
    if attempt > retry.backoff_limit_count:
        return _with_state(state, "Rejected", text, now)
    made = _with_state(state, "Retry", f"Retrying after failure: {text}", now)
    return {**made, "requeueAfterSeconds": retry.pause(attempt)}


def _due(state: Json, request: Json, workload: Json, timeout: float) -> float:
    """Return until when there have to be nodes; admitted, it has them."""
    if is_true(workload["status"].get("conditions"), "Admitted"):
        return _FOREVER
    since = request["metadata"].get("creationTimestamp", "")
    if state["state"] == "Ready":
        since = state["lastTransitionTime"]
    return seconds(since) + timeout


def _wrong_with(config: RequestConfig, parameters: Mapping[str, str]) -> str:
    """Return why a request cannot be made as it stands."""
    longest = parameters.get(MAX_RUN, "")
    if config.provisioning_class_name == QUEUED and is_digits(longest):
        if whole_number(longest, LONGEST_RUN) is None:
            return f"it may run {longest} s, and nodes of {QUEUED} end after {LONGEST_RUN} s"
    return ""


def _with_state(state: Json, word: State, message: str, now: float) -> Json:
    """Return a check that says something; its time moves only when its state does."""
    if (state["state"], state.get("message")) == (word, message):
        return state
    moved = state["lastTransitionTime"] if state["state"] == word else timestamp(now)
    return {**state, "state": word, "message": message[:32_000], "lastTransitionTime": moved}


# ---- an autoscaler of our own --------------------------------------------------------------------
#
# Fulfils ProvisioningRequests on a cluster whose machines exist only here.
#
# The nodes of a workload are decided with its quota, so a request is a mirror of that decision: it
# is provisioned when the workload has nodes that are there, and says how far they are until then. A
# purchase that was too slow is a request that failed. Spec provisioning §5.13.


class SimulatedAutoscaler:
    """Says of requests what became of them."""

    name = "autoscaler"
    watches: Sequence[Kind] = (names.PROVISIONING_REQUEST, names.WORKLOAD)
    idle_without: Kind = names.PROVISIONING_REQUEST

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A request, or those of a workload."""
        if kind == names.PROVISIONING_REQUEST:
            yield own_key(obj)
            return
        full = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        for request in view.by(names.PROVISIONING_REQUEST, BY_OWNER, full):
            yield own_key(request)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the status of one request."""
        request = view.get(names.PROVISIONING_REQUEST, key.name, key.namespace)
        if request is None or "deletionTimestamp" in request["metadata"]:
            return
        old = (request.get("status") or {}).get("conditions") or []
        if is_true(old, "Failed") or is_true(old, "Provisioned"):
            return
        made = _conditions(old, self._owner(request, view), now)
        if made != old:
            yield Patch(Ref.to(request), {"status": {"conditions": made}}, "status")

    def _owner(self, request: Json, view: View) -> Json | None:
        for key in owner_key(request, names.WORKLOAD):
            return view.get(names.WORKLOAD, key.name, key.namespace)
        return None


def _conditions(old: list[Json], workload: Json | None, now: float) -> list[Json]:
    if workload is None:
        text = "only requests of workloads are fulfilled here"
        return with_condition(old, "Failed", "True", "NoWorkload", text, now=now)
    made = with_condition(
        old, "Accepted", "True", "Accepted", "ProvisioningRequest is accepted", now=now
    )
    found = purchase_of(workload)
    planned = find(workload["status"].get("conditions"), names.CAPACITY_PLANNED)
    text = planned["message"] if planned is not None else ""
    if found is not None and found[0] == "TimedOut":
        return with_condition(made, "Failed", "True", "Timeout", text, now=now)
    if not is_holding(workload):
        return made
    if found is not None and found[0] in UNDER_WAY:
        return with_condition(made, "Provisioned", "False", "Provisioning", text, now=now)
    text = "Capacity is found in the cluster" if found is None else text
    return with_condition(made, "Provisioned", "True", "Provisioned", text, now=now)
