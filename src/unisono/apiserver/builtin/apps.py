"""Deployments and their like: filled in and checked as Kubernetes does.

`control.apps` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from unisono.apiserver.builtin.field_errors import immutable, invalid, not_supported, required
from unisono.apiserver.builtin.pods.defaults import fill_template
from unisono.apiserver.builtin.pods.validation import check_template
from unisono.apiserver.builtin.typed_validation import causes_of
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import (
    Json,
    annotations_of,
    at,
    child,
    fill,
    fill_text,
    items,
    labels_of,
)
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.decode import decode
from unisono.kinds.meta import LabelSelector, check_selector
from unisono.kinds.overriding import override

Fill = Callable[[Json], None]

_ROLLING = "RollingUpdate"


class PodSetStrategy(Strategy):
    """A kind that keeps a set of pods of one template running."""

    def __init__(
        self, fill_spec: Fill, strategies: tuple[str, str, str] | None, counts: tuple[str, ...] = ()
    ) -> None:
        """Take what fills in the spec, where the way of updating stands and what it may be.

        `counts` are the numbers of pods that a status always has.
        """
        self._fill_spec = fill_spec
        self._strategies = strategies
        self._counts = counts

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Nothing runs."""
        obj["status"] = dict.fromkeys(self._counts, 0)

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec and the template."""
        spec = child(obj, "spec")
        self._fill_spec(spec)
        fill_template(child(spec, "template"))

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what Kubernetes refuses."""
        spec = at(obj, "spec")
        if old is not None:
            before = at(old, "spec")
            if spec == before:
                return
            if spec.get("selector") != before.get("selector"):
                yield immutable("spec.selector", spec.get("selector"))
        yield from _check_counts(spec)
        yield from _check_selector(spec)
        if self._strategies is not None:
            field, *allowed = self._strategies
            chosen = at(spec, field).get("type")
            if chosen not in allowed:
                yield not_supported(f"spec.{field}.type", chosen, allowed)
        yield from _check_lasting(spec)
        yield from check_template(at(spec, "template"), "spec.template")

    @override
    def generation_moves(self, obj: Json, old: Json) -> bool:
        """A Deployment's annotations go to its ReplicaSets, so they count as well."""
        if self._strategies is not None and self._strategies[0] == "strategy":
            if annotations_of(obj) != annotations_of(old):
                return True
        return super().generation_moves(obj, old)


def _check_counts(spec: Json) -> Iterator[Cause]:
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            yield invalid(f"spec.{field}", value, "must be greater than or equal to 0")


def _check_lasting(spec: Json) -> Iterator[Cause]:
    """The pods of such a set never end by themselves."""
    pod = at(spec, "template", "spec")
    if pod.get("restartPolicy") != "Always":
        path = "spec.template.spec.restartPolicy"
        yield not_supported(path, pod.get("restartPolicy"), ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        path = "spec.template.spec.activeDeadlineSeconds"
        yield Cause("FieldValueForbidden", "Forbidden: must not be specified here", path)


def _check_selector(spec: Json) -> Iterator[Cause]:
    raw = spec.get("selector")
    if not isinstance(raw, dict):
        yield required("spec.selector")
        why = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels_of(at(spec, "template")), why)
        return
    if not at(raw, "matchLabels") and not items(raw, "matchExpressions"):
        yield invalid("spec.selector", raw, "empty selector is invalid here")
        return
    selector, problems = decode(LabelSelector, raw, path="spec.selector", ignore_unknown=True)
    if selector is not None:
        problems = list(check_selector(selector, "spec.selector"))
    yield from causes_of(problems)
    labels = labels_of(at(spec, "template"))
    wanted = at(raw, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        why = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, why)


def _fill_deployment(spec: Json) -> None:
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = child(spec, "strategy")
    fill_text(strategy, type=_ROLLING)
    if strategy["type"] == _ROLLING:
        fill(child(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _fill_replica_set(spec: Json) -> None:
    fill(spec, replicas=1)


def _fill_stateful_set(spec: Json) -> None:
    fill(spec, replicas=1, revisionHistoryLimit=10)
    fill_text(spec, podManagementPolicy="OrderedReady")
    strategy = child(spec, "updateStrategy")
    fill_text(strategy, type=_ROLLING)
    if strategy["type"] == _ROLLING:
        fill(child(strategy, "rollingUpdate"), partition=0)
    fill_text(
        child(spec, "persistentVolumeClaimRetentionPolicy"),
        whenDeleted="Retain",
        whenScaled="Retain",
    )
    for claim in items(spec, "volumeClaimTemplates"):
        fill_text(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        fill_text(child(claim, "spec"), volumeMode="Filesystem")
        fill_text(child(claim, "status"), phase="Pending")


def _fill_daemon_set(spec: Json) -> None:
    fill(spec, revisionHistoryLimit=10)
    strategy = child(spec, "updateStrategy")
    fill_text(strategy, type=_ROLLING)
    if strategy["type"] == _ROLLING:
        fill(child(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)


class ReplicationControllerStrategy(Strategy):
    """A ReplicationController: what ReplicaSets were, with a selector that is a plain map."""

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Nothing runs."""
        obj["status"] = {"replicas": 0}

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec; labels and selector are those of the template."""
        spec = child(obj, "spec")
        fill(spec, replicas=1)
        labels = at(spec, "template", "metadata", "labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not at(obj, "metadata", "labels"):
                child(obj, "metadata")["labels"] = dict(labels)
        if isinstance(spec.get("template"), dict):
            fill_template(child(spec, "template"))

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what Kubernetes refuses."""
        spec = at(obj, "spec")
        if old is not None and spec == at(old, "spec"):
            return
        yield from _check_counts(spec)
        if not spec.get("selector"):
            yield required("spec.selector")
        if not isinstance(spec.get("template"), dict):
            yield required("spec.template")
            return
        labels = labels_of(at(spec, "template"))
        if any(labels.get(key) != value for key, value in at(spec, "selector").items()):
            why = "`selector` does not match template `labels`"
            yield invalid("spec.template.metadata.labels", labels, why)
        yield from _check_lasting(spec)
        yield from check_template(at(spec, "template"), "spec.template")


_ON_DEMAND = ("updateStrategy", _ROLLING, "OnDelete")
_OF_DAEMONS = (
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
)

WORKLOADS: Mapping[str, Strategy] = {
    "/replicationcontrollers": ReplicationControllerStrategy(),
    "apps/deployments": PodSetStrategy(_fill_deployment, ("strategy", _ROLLING, "Recreate")),
    "apps/replicasets": PodSetStrategy(_fill_replica_set, None, ("replicas",)),
    "apps/statefulsets": PodSetStrategy(
        _fill_stateful_set, _ON_DEMAND, ("replicas", "availableReplicas")
    ),
    "apps/daemonsets": PodSetStrategy(_fill_daemon_set, _ON_DEMAND, _OF_DAEMONS),
}
