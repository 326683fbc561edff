"""Our own form of a trace: JSON lines, lossless, what a live system records and what we write.

The first line is about the whole, every other line about one job; a job is written when it has
ended, so a file that breaks off is still a trace. Fields at their default may be left out.

    {"schema": "unisono.trace/v1", "name": "may", "epoch": 1746057600.0}
    {"number": 1, "submit": 0.0, "run": 60.5, "pods": 2, "cpu": 4000, "gpus": 8, "queue": "team-a"}

A `run` of null is a job that never ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from unisono.sim.trace import (
    CANCELLED,
    FAILED,
    FINISHED,
    UNKNOWN,
    WHOLE_GPU,
    BadTrace,
    Dropped,
    Trace,
    make_trace,
)
from unisono.sim.traces.files import bare_name, read_bytes

SCHEMA = "unisono.trace/v1"

Status = Literal["finished", "failed", "cancelled", "unknown"]
_STATUSES: dict[Status, int] = {
    "finished": FINISHED,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "unknown": UNKNOWN,
}
_WORDS = {number: word for word, number in _STATUSES.items()}


class Head(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is true of the whole trace."""

    schema: str
    name: str = ""
    processors: int = 0
    epoch: float = 0.0
    no_run: int = 0  # how many jobs of the source were left out, and why
    no_size: int = 0
    too_large: int = 0
    unreadable: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One job."""

    number: int
    submit: float
    run: Annotated[float, Meta(gt=0)] | None
    request: Annotated[float, Meta(gt=0)] | None = None
    name: str = ""
    pods: Annotated[int, Meta(ge=1)] = 1
    cpu: Annotated[int, Meta(ge=0)] = 0
    memory: Annotated[int, Meta(ge=0)] = 0
    gpus: Annotated[int, Meta(ge=0)] = 0
    gpu_milli: Annotated[int, Meta(ge=1, le=WHOLE_GPU)] = WHOLE_GPU
    models: tuple[str, ...] = ()
    user: str = ""
    group: str = ""
    queue: str = ""
    priority: int = 0
    status: Status = "unknown"


def read_journal(path: Path, *, skip_bad: bool = False) -> Trace:
    """Read a trace of ours."""
    lines = read_bytes(path).split(b"\n")
    head = _head(lines[0], str(path))
    jobs: list[Job] = []
    unreadable = head.unreadable
    decoder = msgspec.json.Decoder(Job)
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            jobs.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            if not skip_bad:
                raise BadTrace(f"{path}: line {number}", str(error)) from error
            unreadable += 1
    dropped = Dropped(head.no_run, head.no_size, head.too_large, unreadable)
    return _trace(head, head.name or bare_name(path), jobs, dropped)


def write_journal(trace: Trace) -> Iterator[bytes]:
    """Yield the lines of a trace."""
    dropped = trace.dropped
    encoder = msgspec.json.Encoder()
    head = Head(
        schema=SCHEMA,
        name=trace.name,
        processors=trace.processors,
        epoch=trace.epoch,
        no_run=dropped.no_run,
        no_size=dropped.no_size,
        too_large=dropped.too_large,
        unreadable=dropped.unreadable,
    )
    yield encoder.encode(head) + b"\n"
    for job in _jobs(trace):
        yield encoder.encode(job) + b"\n"


def _head(line: bytes, path: str) -> Head:
    try:
        head = msgspec.json.decode(line, type=Head)
    except msgspec.DecodeError as error:
        raise BadTrace(f"{path}: line 1", f"is not the first line of a trace: {error}") from error
    if head.schema != SCHEMA:
        raise BadTrace(
            f"{path}: line 1", f'the schema is "{head.schema}"; this version reads {SCHEMA}'
        )
    return head


def _trace(head: Head, name: str, jobs: Iterable[Job], dropped: Dropped) -> Trace:
    rows = list(jobs)
    has_names = any(job.name for job in rows)
    return make_trace(
        name,
        number=[job.number for job in rows],
        submit=[job.submit for job in rows],
        run=[math.inf if job.run is None else job.run for job in rows],
        request=[-1.0 if job.request is None else job.request for job in rows],
        pods=[job.pods for job in rows],
        cpu=[job.cpu for job in rows],
        memory=[job.memory for job in rows],
        gpus=[job.gpus for job in rows],
        gpu_milli=[job.gpu_milli for job in rows],
        models=[job.models for job in rows],
        user=[job.user for job in rows],
        group=[job.group for job in rows],
        queue=[job.queue for job in rows],
        priority=[job.priority for job in rows],
        status=[_STATUSES[job.status] for job in rows],
        names=[job.name for job in rows] if has_names else (),
        dropped=dropped,
        processors=head.processors,
        epoch=head.epoch,
    )


def _jobs(trace: Trace) -> Iterator[Job]:
    columns = (
        *(trace.number, trace.submit, trace.run, trace.request, trace.pods, trace.cpu),
        *(trace.memory, trace.gpus, trace.gpu_milli, trace.model, trace.user, trace.group),
        *(trace.queue, trace.priority, trace.status),
    )
    for row, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        number, submit, run, request, pods, cpu = values[:6]
        memory, gpus, gpu_milli, model, user, group = values[6:12]
        queue, priority, status = values[12:]
        yield Job(
            number=number,
            submit=submit,
            run=run if math.isfinite(run) else None,
            request=request if request != run else None,
            name=trace.names[row] if trace.names else "",
            pods=pods,
            cpu=cpu,
            memory=memory,
            gpus=gpus,
            gpu_milli=gpu_milli if gpus else WHOLE_GPU,
            models=trace.model_sets[model],
            user=trace.users[user],
            group=trace.groups[group],
            queue=trace.queues[queue],
            priority=priority,
            status=_WORDS[status],
        )
