"""Jobs: the selector and labels of their pods, what stays as it was created; and CronJobs.

The template of a job may only change while the job is suspended and has not started, and then only
in where and how its pods run: that is how a queue tells them which nodes they were given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.apiserver.builtin.field_errors import (
    about,
    duplicate,
    immutable,
    invalid,
    not_supported,
    required,
    too_many,
)
from unisono.apiserver.builtin.metadata import check_labels
from unisono.apiserver.builtin.pods.defaults import fill_template
from unisono.apiserver.builtin.pods.validation import check_template
from unisono.apiserver.builtin.typed_validation import judge, known_kind
from unisono.apiserver.caches import VerdictCache
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, child, fill, fill_text, items, numbered
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.cron import wrong_with_schedule, wrong_with_zone
from unisono.kinds.digits import is_digits
from unisono.kinds.meta import wrong_with_label_key
from unisono.kinds.overriding import override
from unisono.kinds.snapshot.candidates import QUEUE_LABEL

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
_SOUND: VerdictCache[bool] = VerdictCache()


class JobStrategy(Strategy):
    """A Job of `batch/v1`."""

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
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
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what Kubernetes refuses, and what our queues could not read."""
        if old is not None:
            yield from _check_update(at(obj, "spec"), at(old, "spec"), old)
            if obj.get("spec") == old.get("spec"):
                return
        spec = at(obj, "spec")
        yield from _check_selector(spec, str(at(obj, "metadata").get("uid") or ""))
        key = context.shape_key = _SOUND.key(*shape_of(obj))
        if _SOUND.get(key):
            labels = at(spec, "template", "metadata").get("labels")
            yield from check_labels(labels, "spec.template.metadata.labels")
            return
        causes = list(_check_new(obj))
        if not causes:
            _SOUND.keep(key, verdict=True)
        yield from causes


def shape_of(obj: Json) -> tuple[Json, Json, Json]:
    """Return what jobs of one shape have in common: all but their identity."""
    spec = at(obj, "spec")
    annotations = at(obj, "metadata", "annotations")
    if LAST_APPLIED in annotations:
        annotations = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if "template" not in spec:
        return spec, {}, annotations  # a pod, or a job of another kind
    template = at(spec, "template")
    metadata = at(template, "metadata")
    return (
        {key: value for key, value in spec.items() if key not in ("selector", "template")},
        {
            **{key: value for key, value in template.items() if key != "metadata"},
            "metadata": {key: value for key, value in metadata.items() if key != "labels"},
        },
        annotations,
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


# ---- the spec of a job, on its own and in a CronJob ----------------------------------------------


_MAX_INT32 = 2**31 - 1
_MAX_INDEXED_PODS = 100_000
_MOST_EXIT_CODES = 255  # as in Kubernetes
_MOST_DIGITS = 9  # of an index; more than any job has pods
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "ttlSecondsAfterFinished",
)
_REPLACEMENT = ("Failed", "TerminatingOrFailed")
_CONDITIONS = ("False", "True", "Unknown")
_CONTAINERS = ("containers", "initContainers")
_ACTIONS = ("FailJob", "FailIndex", "Ignore", "Count")


def fill_job_spec(spec: Json) -> None:
    """Fill in what a job's author left out."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    fill(
        spec,
        parallelism=1,
        backoffLimit=_MAX_INT32 if per_index else 6,
        suspend=False,
        manualSelector=False,
    )
    fill_text(spec, completionMode="NonIndexed")
    careful = isinstance(spec.get("podFailurePolicy"), dict)
    fill_text(spec, podReplacementPolicy="Failed" if careful else "TerminatingOrFailed")
    for rule in items(at(spec, "podFailurePolicy"), "rules"):
        for pattern in items(rule, "onPodConditions"):
            fill_text(pattern, status="True")
    fill_template(child(spec, "template"))


def check_job_spec(spec: Json, path: str, *, with_placement: bool = True) -> Iterator[Cause]:
    """Yield the faults of a job's spec that stands at `path`; see `check_template`."""
    for field in _COUNTS:
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            yield invalid(f"{path}.{field}", value, "must be greater than or equal to 0")
    yield from _check_restarts(spec, path)
    yield from _check_indexes(spec, path)
    policy = spec.get("podReplacementPolicy")
    careful = isinstance(spec.get("podFailurePolicy"), dict)
    allowed = ("Failed",) if careful else _REPLACEMENT
    if policy is not None and policy not in allowed:
        yield not_supported(f"{path}.podReplacementPolicy", policy, allowed)
    yield from _check_failure_policy(spec, path)
    yield from _check_success_policy(spec, path)
    manager = spec.get("managedBy")
    if manager is not None and "/" not in str(manager):
        yield invalid(
            f"{path}.managedBy", manager, "should be a domain-prefixed path (acme.io/foo)"
        )
    yield from check_template(
        at(spec, "template"), f"{path}.template", with_placement=with_placement
    )


def _check_restarts(spec: Json, path: str) -> Iterator[Cause]:
    policy = at(spec, "template", "spec").get("restartPolicy")
    at_ = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        # What an absent policy became: the author has to choose.
        yield required(at_, 'valid values: "OnFailure", "Never"')
    elif policy == "OnFailure" and isinstance(spec.get("podFailurePolicy"), dict):
        yield invalid(at_, policy, "only Never is possible together with podFailurePolicy")


def _check_indexes(spec: Json, path: str) -> Iterator[Cause]:
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        yield not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        completions, parallelism = spec.get("completions"), spec.get("parallelism")
        if completions is None:
            yield required(f"{path}.completions", "when completion mode is Indexed")
        elif completions > _MAX_INDEXED_PODS and (parallelism or 0) > 10_000:
            yield invalid(f"{path}.parallelism", parallelism, "must be at most 10000 here")
        if isinstance(parallelism, int) and parallelism > _MAX_INDEXED_PODS:
            why = f"must be less than or equal to {_MAX_INDEXED_PODS} in an Indexed job"
            yield invalid(f"{path}.parallelism", parallelism, why)
        return
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(field) is not None:
            yield invalid(f"{path}.{field}", spec[field], "needs completionMode Indexed")
    if spec.get("successPolicy") is not None:
        yield invalid(f"{path}.successPolicy", "", "needs completionMode Indexed")


def _check_failure_policy(spec: Json, path: str) -> Iterator[Cause]:
    for at_, rule in numbered(at(spec, "podFailurePolicy"), "rules", f"{path}.podFailurePolicy"):
        action = rule.get("action")
        if not action:
            yield required(f"{at_}.action")
        elif action not in _ACTIONS:
            yield not_supported(f"{at_}.action", action, _ACTIONS)
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            why = "FailIndex needs backoffLimitPerIndex"
            yield invalid(f"{at_}.action", action, why)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if isinstance(codes, dict):
            yield from _check_codes(codes, f"{at_}.onExitCodes", spec)
        for where, pattern in numbered(rule, "onPodConditions", at_):
            type_ = str(pattern.get("type") or "")
            yield from about(f"{where}.type", type_, wrong_with_label_key(type_))
            if pattern.get("status") not in _CONDITIONS:
                yield not_supported(f"{where}.status", pattern.get("status"), _CONDITIONS)
        if codes and conditions:
            yield invalid(at_, "", "onExitCodes and onPodConditions exclude each other")
        elif not codes and not conditions:
            yield invalid(at_, "", "one of onExitCodes and onPodConditions is required")
    most, completions = spec.get("maxFailedIndexes"), spec.get("completions")
    if isinstance(most, int) and isinstance(completions, int) and most > completions:
        if spec.get("completionMode") == "Indexed":
            yield invalid(f"{path}.maxFailedIndexes", most, "must be at most completions")
    if most is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")


def _check_codes(codes: Json, path: str, spec: Json) -> Iterator[Cause]:
    operator, values = codes.get("operator"), codes.get("values") or []
    if operator not in ("In", "NotIn"):
        yield not_supported(f"{path}.operator", operator, ("In", "NotIn"))
    name = codes.get("containerName")
    pod = at(spec, "template", "spec")
    known = {one.get("name") for part in _CONTAINERS for one in items(pod, part)}
    if name is not None and name not in known:
        yield invalid(f"{path}.containerName", name, "must be one of the containers' names")
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    if len(values) > _MOST_EXIT_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_EXIT_CODES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield duplicate(f"{path}.values[{index}]", value)
        elif value == 0 and operator == "In":
            yield invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        seen.add(value)


def _check_success_policy(spec: Json, path: str) -> Iterator[Cause]:
    policy = spec.get("successPolicy")
    if not isinstance(policy, dict) or spec.get("completionMode") != "Indexed":
        return
    if not items(policy, "rules"):
        yield required(f"{path}.successPolicy.rules", "at least one rule must be specified")
    completions = spec.get("completions") or 0
    for at_, rule in numbered(policy, "rules", f"{path}.successPolicy"):
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            yield required(at_, "at least one of succeededCount or succeededIndexes is needed")
        if isinstance(count, int) and count > completions:
            why = f"must be less than or equal to {completions}, the completions"
            yield invalid(f"{at_}.succeededCount", count, why)
        if indexes is not None:
            wrong = _wrong_with_indexes(str(indexes), completions)
            yield from about(f"{at_}.succeededIndexes", indexes, wrong)


def _wrong_with_indexes(text: str, completions: int) -> str:
    """Say why a text such as `0-2,5` does not name indexes of a job; empty if it does."""
    last = -1
    for part in text.split(","):
        ends = part.split("-")
        if len(ends) > 2 or not all(is_digits(end) and len(end) <= _MOST_DIGITS for end in ends):
            return f'"{part}" is neither an index nor a range of them'
        numbers = [int(end) for end in ends]
        if numbers[-1] >= completions:
            return f"{numbers[-1]} is too large for {completions} completions"
        if numbers[0] <= last or numbers[0] > numbers[-1]:
            return "indexes must increase"
        last = numbers[-1]
    return ""


def check_generated_fields_absent(spec: Json, path: str) -> Iterator[Cause]:
    """A template of jobs cannot have what each job gets of its own."""
    if spec.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", spec["manualSelector"], ("nil", "false"))
    if spec.get("selector"):
        yield invalid(f"{path}.selector", spec["selector"], "`selector` will be auto-generated")


# ---- cron jobs -----------------------------------------------------------------------------------
#
# CronJobs: jobs that are made again and again (`control.cron`).

_CONCURRENCY = ("Allow", "Forbid", "Replace")


class CronJobStrategy(Strategy):
    """A CronJob of `batch/v1`."""

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Nothing has run yet."""
        obj["status"] = {}

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec and the template of the jobs."""
        spec = child(obj, "spec")
        fill_text(spec, concurrencyPolicy="Allow")
        fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
        template = child(spec, "jobTemplate")
        child(template, "metadata")
        # A job gets its own defaults when it is made; the template of its pods is complete.
        fill_template(child(child(template, "spec"), "template"))

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what Kubernetes refuses."""
        spec = at(obj, "spec")
        if old is not None and spec == at(old, "spec"):
            return
        yield from _check_schedule(spec)
        _warn_of_queue(obj, context)
        policy = spec.get("concurrencyPolicy")
        if policy not in _CONCURRENCY:
            yield not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY)
        for field in (
            "startingDeadlineSeconds",
            "successfulJobsHistoryLimit",
            "failedJobsHistoryLimit",
        ):
            value = spec.get(field)
            if isinstance(value, int) and value < 0:
                yield invalid(f"spec.{field}", value, "must be greater than or equal to 0")
        made = at(spec, "jobTemplate", "spec")
        yield from check_generated_fields_absent(made, "spec.jobTemplate.spec")
        yield from check_job_spec(made, "spec.jobTemplate.spec")


class CustomCronStrategy(Strategy):
    """A CronJob of Volcano, or a RayCronJob."""

    allows_unconditional_update = False
    is_metadata_in_status = False
    is_typed = False

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what their own webhooks and controllers refuse."""
        spec = at(obj, "spec")
        if old is None or spec != at(old, "spec"):
            yield from _check_schedule(spec)
            if at(spec, "jobTemplate", "spec"):  # a RayCronJob's own labels are those of its jobs
                _warn_of_queue(obj, context)


def _check_schedule(spec: Json) -> Iterator[Cause]:
    schedule, zone = str(spec.get("schedule") or ""), spec.get("timeZone")
    if not schedule:
        yield required("spec.schedule")
    elif "TZ=" in schedule:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, why)
    else:
        yield from about("spec.schedule", schedule, wrong_with_schedule(schedule))
    if zone is not None:
        yield from about("spec.timeZone", zone, wrong_with_zone(str(zone)))


def _warn_of_queue(obj: Json, context: Context) -> None:
    """A queue named at the wrong place holds nothing to quota."""
    queue = at(obj, "metadata", "labels").get(QUEUE_LABEL)
    if queue and not at(obj, "spec", "jobTemplate", "metadata", "labels").get(QUEUE_LABEL):
        context.warn(
            f"metadata.labels[{QUEUE_LABEL}]: has no effect here: a CronJob is not queued, its jobs"
            f" are; name {queue} in spec.jobTemplate.metadata.labels"
        )
