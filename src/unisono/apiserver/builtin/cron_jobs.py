"""CronJobs: jobs that are made again and again; we store them and check them."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import about, invalid, not_supported, required
from unisono.apiserver.builtin.fields import at, child, fill, fill_text
from unisono.apiserver.builtin.jobs import check_generated_fields_absent, check_job_spec
from unisono.apiserver.builtin.pods.defaults import fill_template
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.digits import whole_number
from unisono.kinds.overriding import override
from unisono.kinds.scalar import duration_ms

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


# ---- schedules -----------------------------------------------------------------------------------


_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 6, _DAYS),
)


def wrong_with_schedule(text: str) -> str:
    """Say why a text is no schedule; empty if it is one.

    >>> wrong_with_schedule("*/5 0-6,22 * * mon-fri"), wrong_with_schedule("99 * * * *")
    ('', 'minute 99 is not between 0 and 59')
    """
    if text.startswith("@every "):
        try:
            return "" if duration_ms(text.removeprefix("@every ")) > 0 else "must be above zero"
        except ValueError as error:
            return str(error)
    if text.startswith("@"):
        return "" if text in _WORDS else f"known words are {', '.join(_WORDS)} and @every"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"has {len(fields)} fields; minute, hour, day, month and weekday are needed"
    for field, rules in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if wrong := _wrong_with_part(part, *rules):
                return wrong
    return ""


def _wrong_with_part(part: str, name: str, least: int, most: int, words: tuple[str, ...]) -> str:
    span, slash, step = part.partition("/")
    if slash and not whole_number(step, 9999):
        return f"{name} has the step {step!r}, which is not a number above zero"
    if span in ("*", "?"):
        return ""
    first, dash, last = span.partition("-")
    values: list[int] = []
    for end in (first, last) if dash else (first,):
        if end.lower() in words:
            values.append(least + words.index(end.lower()))
        elif (value := whole_number(end, 9999)) is not None:
            values.append(value)
        else:
            return f"{name} has the value {end!r}, which is not a number"
    for value in values:
        if not least <= value <= most:
            return f"{name} {value} is not between {least} and {most}"
    return f"{name} {span} ends before it begins" if values[0] > values[-1] else ""
