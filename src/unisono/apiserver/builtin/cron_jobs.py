"""CronJobs: jobs that are made again and again; we store them and check them."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.causes import about, invalid, not_supported, required
from unisono.apiserver.builtin.job_specs import check_generated_fields_absent, check_job_spec
from unisono.apiserver.builtin.pod_defaults import fill_template
from unisono.apiserver.builtin.reach import Json, at, child, fill, fill_text
from unisono.apiserver.builtin.schedules import wrong_with_schedule
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.overriding import override

_CONCURRENCY = ("Allow", "Forbid", "Replace")


class CronJobStrategy(Strategy):
    """A CronJob of `batch/v1`."""

    @override
    def prepare_create(self, obj: Json, around: Surroundings) -> None:
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
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """Yield what Kubernetes refuses."""
        spec = at(obj, "spec")
        if old is not None and spec == at(old, "spec"):
            return
        schedule = str(spec.get("schedule") or "")
        if not schedule:
            yield required("spec.schedule")
        elif "TZ=" in schedule:
            yield invalid("spec.schedule", schedule, "use spec.timeZone for the time zone")
        else:
            yield from about("spec.schedule", schedule, wrong_with_schedule(schedule))
        zone = spec.get("timeZone")
        if zone is not None and not str(zone):
            yield invalid("spec.timeZone", zone, "must be nil or non-empty string")
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
