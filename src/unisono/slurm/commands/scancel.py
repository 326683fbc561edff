"""`scancel`: stop jobs, by number or by what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.slurm.client import ApiClient, ClientError
from unisono.slurm.commands.context import (
    COMMON,
    Context,
    Outcome,
    Refused,
    parse_arguments,
    path_of,
    states_wanted,
)
from unisono.slurm.commands.job_lookup import Found, called, find
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded
from unisono.slurm.lite_typing import Json
from unisono.slurm.states import is_over

_OPTIONS = options_table(
    Option("account", "A"),
    Option("batch", "b", "nothing"),
    Option("full", "f", "nothing"),
    Option("jobname", "n"),
    Option("name"),
    Option("me", "", "nothing"),
    Option("partition", "p"),
    Option("qos", "q"),
    Option("quiet", "Q", "nothing"),
    Option("reservation", "R"),
    Option("signal", "s"),
    Option("state", "t"),
    Option("user", "u"),
    Option("nodelist", "w"),
    Option("verbose", "v", "nothing"),
    Option("help", "", "nothing"),
    *COMMON,
)
_FILTERS = ("account", "name", "jobname", "partition", "qos", "state", "user", "nodelist", "me")
_ENDS = ("", "KILL", "TERM", "9", "15", "SIGKILL", "SIGTERM")


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Stop jobs."""
    given = parse_arguments("scancel", arguments, _OPTIONS)
    options = given.options
    if "help" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("scancel", _OPTIONS))
    if options.get("signal", "").upper() not in _ENDS:
        raise Refused(f"signal {options['signal']} cannot be sent to pods; only KILL and TERM can")
    filters = {key: value for key, value in options.items() if key in _FILTERS}
    if not given.words and not filters:
        raise Refused("No job identification provided")
    _states(filters)  # an unknown state must not cancel jobs by mistake
    api = context.connect(options)
    if given.words:
        return _by_number(api, given.words, filters, context)
    for job in decoded(api.call("GET", JOBS)):
        if not job["spec"].get("task") and not _is_over(job) and _matches(job, filters, context):
            _stop(api, job, context)
    return Outcome()


def _by_number(
    api: ApiClient, words: Sequence[str], filters: Mapping[str, str], context: Context
) -> Outcome:
    error: list[str] = []
    for word in (part for text in words for part in text.split(",") if part):
        one = called(word)
        if one is None:
            error.append(f"scancel: error: Invalid job id {word}")
            continue
        if one.step:
            raise Refused("steps end with their srun; cancel the job")
        found = find(api, one)
        if not found.jobs and not found.waiting:
            message = f"Kill job error on job id {word}: Invalid job id specified"
            error.append(f"scancel: error: {message}")
            continue
        over = [job for job in found.jobs if _is_over(job)]
        if over and len(over) == len(found.jobs) and not found.waiting:
            message = f"Kill job error on job id {word}: Job/step already completing or completed"
            error.append(f"scancel: error: {message}")
            continue
        for job in found.jobs:
            if not _is_over(job) and _matches(job, filters, context):
                _stop(api, job, context)
        _skip(api, found)
    return Outcome("", "".join(f"{line}\n" for line in error), 1 if error else 0)


def _skip(api: ApiClient, found: Found) -> None:
    """Take tasks off an array that are no jobs yet."""
    if found.array is None or not found.waiting:
        return
    before = found.array["spec"]["array"].get("cancelled") or ""
    listed = ",".join(filter(None, [before, *map(str, found.waiting)]))
    metadata = found.array["metadata"]
    path = path_of(metadata["namespace"], metadata["name"])
    api.patch(path, {"spec": {"array": {"cancelled": listed}}})


def _stop(api: ApiClient, job: Json, context: Context) -> None:
    metadata = job["metadata"]
    path = path_of(metadata["namespace"], metadata["name"])
    try:
        api.patch(path, stop_changes(context.user_id))
    except ClientError as error:
        if error.status != 404:
            raise


def stop_changes(user_id: int) -> Json:
    """Return the patch that cancels a job in the name of a system user."""
    return {"spec": {"stop": f"cancel:{user_id}"}}


def _is_over(job: Json) -> bool:
    return is_over((job.get("status") or {}).get("state") or "")


def _states(filters: Mapping[str, str]) -> set[str] | None:
    return states_wanted(filters.get("state", ""), "Invalid job state specified: {}")


def _matches(job: Json, filters: Mapping[str, str], context: Context) -> bool:
    row = Row(job, context.now)
    if "me" in filters and row.user != context.user:
        return False
    states = _states(filters)
    if states is not None and row.state not in states:
        return False
    plain = (
        ("user", row.user),
        ("name", row.spec.get("jobName")),
        ("jobname", row.spec.get("jobName")),
        ("partition", row.partition),
        ("account", row.account),
        ("qos", row.qos),
    )
    return all(not filters.get(key) or value in filters[key].split(",") for key, value in plain)
