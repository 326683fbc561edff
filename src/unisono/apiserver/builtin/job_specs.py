"""The spec of a Job, wherever it stands: in a Job, or as the template of a CronJob."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.causes import (
    about,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from unisono.apiserver.builtin.pod_checks import check_template
from unisono.apiserver.builtin.pod_defaults import fill_template
from unisono.apiserver.builtin.reach import Json, at, child, fill, fill_text, items, numbered
from unisono.apiserver.errors import Cause
from unisono.kinds.digits import is_digits
from unisono.kinds.meta import wrong_with_label_key

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
