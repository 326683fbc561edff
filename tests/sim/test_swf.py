"""Logs in the Standard Workload Format: what is kept, what is dropped, what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.support.simulations import published
from unisono.sim.trace import CANCELLED, FAILED, FINISHED, UNKNOWN, BadTrace, Dropped, Trace
from unisono.sim.traces.swf import read_header, read_swf

HEADER = "; UnixStartTime: 843480031\n; MaxNodes: 50\n; MaxProcs: 100\n; Queue: 3 batch\n;\n"


def line(
    number: int,
    *,
    submit: float = 0,
    run: object = 50,
    allocated: int = 4,
    size: int = 4,
    **more: int,
) -> str:
    request, status, user = more.get("request", 60), more.get("status", 1), more.get("user", 7)
    queue = more.get("queue", 3)
    return (
        f"{number} {submit} -1 {run} {allocated} -1 -1 {size} {request} -1 {status} {user} 2 -1 "
        f"{queue} -1 -1 -1\n"
    )


def read(tmp_path: Path, text: str, *, processors: int = 0, skip_bad: bool = False) -> Trace:
    path = tmp_path / "log.swf"
    path.write_text(text)
    return read_swf(path, processors=processors, skip_bad=skip_bad)


def test_a_job_has_its_columns(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + line(2, submit=9) + line(1, submit=9, user=-1) + line(3))
    assert trace.number.tolist() == [3, 1, 2]
    assert trace.submit.tolist() == [0, 9, 9]
    assert trace.pods.tolist() == [4, 4, 4]
    assert trace.cpu.tolist() == [1000, 1000, 1000]
    assert [trace.users[user] for user in trace.user] == ["7", "", "7"]
    assert trace.queues == ("batch",)
    assert (trace.processors, trace.epoch, trace.name) == (100, 843480031, "log")


def test_the_spec_cleaning(tmp_path: Path) -> None:
    text = HEADER + "".join(
        [
            line(1, request=-1),  # the request becomes the run time
            line(2, size=0, allocated=0),
            line(3, run=0),
            line(4, run=-1, size=0, allocated=0),  # counted once, by its first reason
            line(5, size=101),
            line(6, size=-1, allocated=8),  # the size that was given, where none was asked for
            line(7, size=100),
        ]
    )
    trace = read(tmp_path, text)
    assert trace.number.tolist() == [1, 6, 7]
    assert trace.request.tolist() == [50, 60, 60]
    assert trace.pods.tolist() == [4, 8, 100]
    assert trace.dropped == Dropped(no_run=2, no_size=1, too_large=1)
    assert trace.dropped.total == 4


def test_the_machine_may_be_overruled_or_unknown(tmp_path: Path) -> None:
    text = line(1, size=3) + line(2, size=5000)
    assert read(tmp_path, text).dropped.total == 0
    assert read(tmp_path, text).processors == 0
    assert read(tmp_path, text, processors=10).dropped.too_large == 1
    assert read(tmp_path, "; MaxNodes: 50\n" + text).processors == 50


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (" ".join(["1"] * 17) + "\n", "line 7: has 17 fields; a job has 18"),
        (line(2, run="soon"), 'line 7: field 4 is "soon", which is not a number'),
        (line(2, run="inf"), "line 7: has a field that is not finite"),
        (line(2, run="1-2"), 'line 7: field 4 is "1-2", which is not a number'),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path: Path, bad: str, problem: str) -> None:
    text = HEADER + line(1) + bad + line(3)
    with pytest.raises(BadTrace, match=problem):
        read(tmp_path, text)
    trace = read(tmp_path, text, skip_bad=True)
    assert trace.number.tolist() == [1, 3]
    assert trace.dropped == Dropped(unreadable=1)


def test_short_and_long_lines_that_even_out_are_noticed(tmp_path: Path) -> None:
    text = " ".join(["1"] * 17) + "\n" + " ".join(["1"] * 19) + "\n"
    with pytest.raises(BadTrace, match="line 1"):
        read(tmp_path, text)


def test_odd_files_read_like_regular_ones(tmp_path: Path) -> None:
    plain = read(tmp_path, HEADER + line(1) + line(2, submit=5))
    odd = [
        HEADER + line(1) + "; a remark\n\n" + line(2, submit=5),
        HEADER + line(1).replace("\n", " node1 node2\n") + line(2, submit=5),  # more columns
        HEADER + line(1, run="50.0") + line(2, submit=5),
        HEADER.replace("\n", "\r\n") + (line(1) + line(2, submit=5)).replace("\n", "\r\n"),
        HEADER + "\n" + line(1).replace(" ", "\t") + line(2, submit=5).rstrip("\n"),
    ]
    for text in odd:
        trace = read(tmp_path, text)
        assert trace.number.tolist() == [1, 2], text
        assert trace.run.tolist() == plain.run.tolist()
        assert trace.processors == 100


def test_fractions_are_kept(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1, submit=0.125, run="1e3"))
    assert trace.submit.tolist() == [0.125]
    assert trace.run.tolist() == [1000]


def test_ends_and_empty_files(tmp_path: Path) -> None:
    ends = [line(number, status=status) for number, status in enumerate((1, 0, 5, 3, -1))]
    assert read(tmp_path, "".join(ends)).status.tolist() == [
        *(FINISHED, FAILED, CANCELLED, UNKNOWN, UNKNOWN)
    ]
    assert len(read(tmp_path, HEADER)) == 0
    assert len(read(tmp_path, "")) == 0


def test_gzip_by_suffix(tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress((HEADER + line(1)).encode()))
    assert read_swf(path).name == "log"
    path.write_bytes(b"no gzip at all")
    with pytest.raises(BadTrace, match="not a whole gzip file"):
        read_swf(path)


def test_headers_say_what_they_can() -> None:
    header = read_header(b"; MaxProcs: many\n; Queue: 1 [fque:1]  \n; Queue: 2\n; Partition: 1 ALL")
    assert (header.max_procs, header.queues, header.partitions) == (0, {1: "[fque:1]"}, {1: "ALL"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "jobs", "dropped", "processors"),
    [
        ("KTH-SP2-1996-2.1-cln", 27_992, 0, 100),
        ("SDSC-BLUE-2000-4.2-cln", 232_536, 10_770, 1152),
        ("HPC2N-2002-2.1-cln", 202_876, 0, 240),
        ("CEA-Curie-2011-2.1-cln", 295_540, 17_286, 93_312),
        ("METACENTRUM-2009-2", 99_944, 3712, 0),
        ("lublin_256", 10_000, 0, 256),
    ],
)
def test_real_logs(name: str, jobs: int, dropped: int, processors: int) -> None:
    trace = read_swf(published(f"swf/{name}.swf.gz"))
    assert (len(trace), trace.dropped.no_run, trace.processors) == (jobs, dropped, processors)
    assert trace.dropped.total == dropped
    assert (np.diff(trace.submit) >= 0).all()
    assert (trace.request > 0).all()
