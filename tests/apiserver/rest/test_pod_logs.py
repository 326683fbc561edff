"""Following a log: across rotation, and no further than the container's end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from unisono.apiserver.request import Request, User
from unisono.apiserver.rest import pod_logs
from unisono.apiserver.rest.pod_logs import LogFiles, LogOptions

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"name": "main"}]},
}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pod_logs, "_POLL_SECONDS", 0.001)
    path = tmp_path / "default" / "u" / "main.log"
    path.parent.mkdir(parents=True)
    return path


def write(path: Path, *words: str) -> None:
    with path.open("a") as file:
        file.writelines(f"2026-01-01T00:00:00.000000000Z {word}\n" for word in words)


def rotate(path: Path) -> None:
    for number in (2, 1, 0):
        older = path.with_name(f"{path.name}.{number + 1}")
        newer = path.with_name(f"{path.name}.{number}") if number else path
        if newer.exists():
            newer.replace(older)


def following(folder: Path, is_over: list[bool]) -> AsyncIterator[bytes]:
    request = Request(method="GET", path="", query={"follow": "true"}, user=User(name="a"))
    options = LogOptions.of(request, POD, 0.0)
    return LogFiles(folder).open(POD, options, is_over=lambda: bool(is_over))


def test_a_log_goes_on_in_new_files(log: Path, tmp_path: Path) -> None:
    async def story() -> bytes:
        is_over: list[bool] = []
        stream = following(tmp_path, is_over)
        write(log, "one")
        seen = await anext(stream)
        write(log, "two")
        rotate(log)
        write(log, "three")
        rotate(log)
        write(log, "four")
        async with asyncio.timeout(10):
            while not seen.endswith(b"four\n"):
                seen += await anext(stream)
            rotate(log)  # and for a moment there is no file at all
            await asyncio.sleep(0.01)
            write(log, "five")
            is_over.append(True)
            return seen + b"".join([piece async for piece in stream])

    assert asyncio.run(story()).split() == [b"one", b"two", b"three", b"four", b"five"]


def test_another_run_is_another_log(log: Path, tmp_path: Path) -> None:
    async def story() -> bytes:
        stream = following(tmp_path, [])
        write(log, "one")
        seen = await anext(stream)
        log.replace(log.with_name("main.previous.log"))
        write(log, "of the next run")
        async with asyncio.timeout(10):
            return seen + b"".join([piece async for piece in stream])

    assert asyncio.run(story()) == b"one\n"


def test_a_log_that_is_written_on_request_is_read_to_its_end(log: Path, tmp_path: Path) -> None:
    def ends() -> bool:  # the runner writes when it is asked, and by then all is over
        write(log, "one")
        return True

    async def story() -> bytes:
        request = Request(method="GET", path="", query={"follow": "true"}, user=User(name="a"))
        options = LogOptions.of(request, POD, 0.0)
        stream = LogFiles(tmp_path).open(POD, options, is_over=ends)
        async with asyncio.timeout(10):
            return await anext(stream)

    assert asyncio.run(story()) == b"one\n"
