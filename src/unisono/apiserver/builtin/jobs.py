"""Jobs: the selector and labels of their pods, and what stays as it was created.

The template of a job may only change while the job is suspended and has not started, and then only
in where and how its pods run: that is how a queue tells them which nodes they were given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.apiserver.builtin.causes import immutable, invalid, required
from unisono.apiserver.builtin.job_specs import check_job_spec, fill_job_spec
from unisono.apiserver.builtin.judge import judge, known_kind
from unisono.apiserver.builtin.metadata import check_labels
from unisono.apiserver.builtin.reach import Json, at, child, items
from unisono.apiserver.builtin.seen import Seen
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.overriding import override

UID_LABEL = "batch.kubernetes.io/controller-uid"
NAME_LABEL = "batch.kubernetes.io/job-name"
# The same without a domain, as older clients look for them.
_OLD_LABELS = {UID_LABEL: "controller-uid", NAME_LABEL: "job-name"}

_FROZEN = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
# Where kubectl keeps a copy of the whole manifest, the job's name included.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_JOB = known_kind("batch/v1", "Job")
_SOUND: Seen[bool] = Seen()


class JobStrategy(Strategy):
    """A Job of `batch/v1`."""

    @override
    def prepare_create(self, obj: Json, around: Surroundings) -> None:
        """Give the job's pods labels by which they are known, and the job the selector for them."""
        obj["status"] = {}
        spec = child(obj, "spec")
        if spec.get("manualSelector") is True:
            return
        metadata = child(obj, "metadata")
        uid, name = str(metadata.get("uid") or ""), str(metadata.get("name") or "")
        template = child(child(spec, "template"), "metadata")
        labels = child(template, "labels")
        if metadata.get("labels") is labels:
            del metadata["labels"]  # the job has none of its own, see `default`
        for label, value in ((UID_LABEL, uid), (NAME_LABEL, name)):
            labels[label] = value
            labels[_OLD_LABELS[label]] = value
        if spec.get("selector") is None:
            spec["selector"] = {"matchLabels": {UID_LABEL: uid}}

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec; a job without labels gets those of its pods."""
        spec = child(obj, "spec")
        fill_job_spec(spec)
        labels = at(spec, "template", "metadata", "labels")
        if labels and not at(obj, "metadata", "labels"):
            # A new job's pods get more labels in a moment, and then the job gets those as well:
            # until then the two are one.
            is_new = spec.get("selector") is None
            child(obj, "metadata")["labels"] = labels if is_new else dict(labels)

    @override
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """Yield what Kubernetes refuses, and what our queues could not read."""
        if old is not None:
            yield from _check_update(at(obj, "spec"), at(old, "spec"), old)
            if obj.get("spec") == old.get("spec"):
                return
        spec = at(obj, "spec")
        yield from _check_selector(spec, str(at(obj, "metadata").get("uid") or ""))
        key = _SOUND.key(*shape_of(obj))
        if _SOUND.get(key):
            labels = at(spec, "template", "metadata").get("labels")
            yield from check_labels(labels, "spec.template.metadata.labels")
            return
        causes = list(_check_new(obj))
        if not causes:
            _SOUND.keep(key, verdict=True)
        yield from causes


def shape_of(obj: Json) -> tuple[Json, Json, Json]:
    """Return what jobs of one shape have in common: all but who they are."""
    spec = at(obj, "spec")
    template = at(spec, "template")
    metadata = at(template, "metadata")
    annotations = at(obj, "metadata", "annotations")
    return (
        {key: value for key, value in spec.items() if key not in ("selector", "template")},
        {
            **{key: value for key, value in template.items() if key != "metadata"},
            "metadata": {key: value for key, value in metadata.items() if key != "labels"},
        },
        {key: value for key, value in annotations.items() if key != LAST_APPLIED},
    )


def _check_new(obj: Json) -> Iterator[Cause]:
    found = list(check_job_spec(at(obj, "spec"), "spec", with_placement=False))
    yield from found
    if not found:
        # Only what Kubernetes lets pass is asked whether our queues can read it.
        assert _JOB is not None, "Job is one of our kinds"
        yield from judge(_JOB, obj)[0]


def _check_selector(spec: Json, uid: str) -> Iterator[Cause]:
    selector, labels = spec.get("selector"), at(spec, "template", "metadata", "labels")
    if not isinstance(selector, dict):
        yield required("spec.selector")
        why = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, why)
        return
    wanted = at(selector, "matchLabels")
    if spec.get("manualSelector") is not True and wanted != {UID_LABEL: uid}:
        old_form = {_OLD_LABELS[UID_LABEL]: uid}
        if wanted != old_form or items(selector, "matchExpressions"):
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    if any(labels.get(key) != value for key, value in wanted.items()):
        why = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, why)


# ---- what may change ---------------------------------------------------------------------------


def _check_update(new: Json, old: Json, whole: Json) -> Iterator[Cause]:
    for field in _FROZEN:
        if new.get(field) != old.get(field):
            yield immutable(f"spec.{field}", new.get(field))
    if new.get("completions") != old.get("completions") and not _scales(new):
        yield immutable("spec.completions", new.get("completions"))
    before, after, path = at(old, "template"), at(new, "template"), "spec.template"
    started = at(whole, "status").get("startTime")
    if old.get("suspend") is True and not started:
        before, after = _without_directions(before), _without_directions(after)
        path = "spec.template.spec"
    if before != after:
        yield immutable(path, "the pod template")


def _scales(new: Json) -> bool:
    """Pods with an index can become more or fewer, if all of them may run at once."""
    return (
        new.get("completionMode") == "Indexed"
        and new.get("completions") is not None
        and new.get("completions") == new.get("parallelism")
    )


def _without_directions(template: Json) -> Json:
    """Return a template without what a queue may say to pods that have not started."""
    metadata = {
        key: value
        for key, value in at(template, "metadata").items()
        if key not in ("labels", "annotations")
    }
    free = ("nodeSelector", "tolerations", "affinity", "schedulingGates", "resources")
    spec: dict[str, Any] = {
        key: value for key, value in at(template, "spec").items() if key not in free
    }
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [{**one, "resources": None} for one in items(spec, name)]
    return {"metadata": metadata, "spec": spec}
