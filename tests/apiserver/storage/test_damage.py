"""Full disks, damaged files, a second writer: nothing that was acknowledged is lost in silence."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.random_requests import ADMIN
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.request import Request
from unisono.apiserver.storage.database import Database, Unusable
from unisono.apiserver.storage.store import Store, WriteFailed
from unisono.net.http.messages import Response
from unisono.runtime.ids import new_uid, random_source

MAPS = "/api/v1/namespaces/default/configmaps"
NOTED = "state.db.acknowledged"


def _obj(name: str, text: str = "") -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "uid": f"uid-{name}"}, "text": text}


def _filled(path: Path, count: int = 20) -> None:
    """Write objects, change some, delete some, and stop."""

    async def story() -> None:
        store = Store(Database(path))
        for number in range(count):
            store.put(("/pods", "default", f"p{number}"), _obj(f"p{number}", "x" * 3000))
        await store.committed()
        store.put(("/pods", "default", "p1"), _obj("p1", "changed"))
        store.remove(("/pods", "default", "p2"), _obj("p2"))
        await store.committed()
        store.close()

    asyncio.run(story())


def _opened(path: Path) -> int:
    """Open a file as a start does; return its newest version."""

    async def story() -> int:
        database = Database(path)
        try:
            store = Store(database)
        except Unusable:
            database.close()
            raise
        store.close()
        return store.rv

    return asyncio.run(story())


def test_an_undamaged_file_opens_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    assert _opened(path) == _opened(path) == 22


def test_a_file_from_before_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    (tmp_path / NOTED).unlink()
    assert _opened(path) == 22
    assert (tmp_path / NOTED).read_bytes().startswith(b"00000000000000000022 ")


def test_a_crash_before_the_note_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    before = (tmp_path / NOTED).read_bytes()

    async def story() -> None:
        store = Store(Database(path))
        store.put(("/pods", "default", "late"), _obj("late"))
        await store.committed()
        store.close()

    asyncio.run(story())
    (tmp_path / NOTED).write_bytes(before)
    assert _opened(path) == 23


def _killed(path: Path) -> None:
    """Leave what a process leaves that was killed: everything in the write-ahead log."""
    copies = {}

    async def story() -> None:
        store = Store(Database(path))
        for number in range(20):
            store.put(("/pods", "default", f"p{number}"), _obj(f"p{number}", "x" * 3000))
            await store.committed()
        for one in path.parent.iterdir():
            if not one.name.endswith("-shm"):
                copies[one] = one.read_bytes()
        store.close()

    asyncio.run(story())
    for one, content in copies.items():
        one.write_bytes(content)


def _flip_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 32] = bytes(one ^ 0xFF for one in content[middle : middle + 32])
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        _flip_middle,
        lambda wal: wal.unlink(),
        lambda wal: wal.write_bytes(wal.read_bytes()[:40_000]),
        lambda wal: wal.write_bytes(b""),
    ],
    ids=["flipped", "gone", "cut", "empty"],
)
def test_a_damaged_log_of_a_killed_process_is_told(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    path = tmp_path / "state.db"
    _killed(path)
    damage(tmp_path / "state.db-wal")
    with pytest.raises(Unusable, match="has lost changes that were acknowledged") as refused:
        _opened(path)
    assert f"rm {tmp_path / NOTED}" in str(refused.value)
    # The next step that is named works: an operator who goes on without them can.
    (tmp_path / NOTED).unlink()
    assert _opened(path) < 20


def test_an_undamaged_log_of_a_killed_process_is_read(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _killed(path)
    assert _opened(path) == 20


def _zero_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(2 * 4096, len(content), 4096):
        content[start : start + 4096] = bytes(4096)
    path.write_bytes(content)


def _without_row(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM obj WHERE name = 'p7'")
    connection.commit()
    connection.close()


def _other_row(path: Path) -> None:
    connection = sqlite3.connect(path)
    changed = "CAST(replace(data, 'xx', 'xy') AS BLOB)"
    connection.execute(f"UPDATE obj SET data = {changed} WHERE name = 'p7'")
    connection.commit()
    connection.close()


def _text_row(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE obj SET data = CAST(data AS TEXT) WHERE name = 'p7'")
    connection.commit()
    connection.close()


def _no_json(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE obj SET data = x'00' WHERE name = 'p7'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damage", [_zero_pages, _without_row, _other_row, _text_row, _no_json])
def test_a_damaged_page_is_told(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    damage(path)
    with pytest.raises(Unusable, match="is damaged") as refused:
        _opened(path)
    assert str(path) in str(refused.value)
    assert "from a backup" in str(refused.value)


def _past(path: Path) -> list[tuple[int, str]]:
    """Open a file as a start does; return the changes that a watch can still read."""

    async def story() -> list[tuple[int, str]]:
        store = Store(Database(path))
        history = store.history("/pods")
        found = [(one.rv, one.kind.value) for one in history.after(history.complete_after)]
        assert history.complete_after == (found[0][0] - 1 if found else store.rv)
        store.close()
        return found

    return asyncio.run(story())


def _run(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_the_past_that_is_whole_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    whole = [*((rv, "ADDED") for rv in range(1, 21)), (21, "MODIFIED"), (22, "DELETED")]
    assert _past(path) == whole
    assert _past(path) == whole  # a start without a write changes nothing about it


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET data = CAST(replace(data, 'xx', 'xy') AS BLOB) WHERE rv = 7",
        "UPDATE log SET type = 'MODIFIED' WHERE rv = 7",
        "UPDATE log SET name = 'p8' WHERE rv = 7",
        "UPDATE log SET rv = 99 WHERE rv = 7",
        "DELETE FROM log WHERE rv = 7",
        "DELETE FROM log WHERE rv = 22",
        "UPDATE log SET data = x'00' WHERE rv = 7",
        "UPDATE log SET type = 'x' WHERE rv = 7",
    ],
    ids=["bytes", "type", "name", "version", "lost", "last lost", "no JSON", "no type"],
)
def test_a_past_that_is_damaged_is_not_told(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    _run(path, statement)
    assert _past(path) == []  # objects are what they were; watchers list them anew
    assert _opened(path) == 22
    _written_once_more(path)
    assert _past(path) == [(23, "ADDED")]


def _written_once_more(path: Path) -> None:
    async def story() -> None:
        store = Store(Database(path))
        store.put(("/pods", "default", "new"), _obj("new"))
        await store.committed()
        store.close()

    asyncio.run(story())


def test_the_past_is_trimmed_and_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unisono.apiserver.storage.store.MAX_HISTORY_CHANGES", 10)
    path = tmp_path / "state.db"
    _filled(path)
    _written_once_more(path)
    _written_once_more(path)
    kept = _past(path)
    assert kept[-1][0] == 24
    assert [rv for rv, _ in kept] == [*range(kept[0][0], 25)]


def test_a_damaged_note_is_told(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _filled(path)
    note = tmp_path / NOTED
    note.write_bytes(note.read_bytes().replace(b"22", b"21"))
    with pytest.raises(Unusable, match=f"{NOTED} is damaged"):
        _opened(path)


def test_there_is_no_second_writer_whatever_becomes_of_other_locks(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first = Database(path)
    with pytest.raises(Unusable, match="another process writes to it; stop it with: unisono down"):
        Database(path)
    assert first.is_in_place()
    path.rename(tmp_path / "elsewhere")
    assert not first.is_in_place()
    path.write_bytes(b"")
    assert not first.is_in_place()
    first.close()


# ---- a full disk ----------------------------------------------------------------------------


class _Small(Database):
    """A database on a disk that can be filled and freed."""

    def fill(self) -> None:
        """Leave no room for another page."""
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        self._connection.execute(f"PRAGMA max_page_count = {pages}")

    def free(self) -> None:
        """Make room again."""
        self._connection.execute("PRAGMA max_page_count = 1000000")


def test_a_full_disk_takes_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    async def story() -> None:
        database = _Small(path)
        store = Store(database)
        key = ("/pods", "default", "p")
        store.put(key, _obj("p"))
        await store.committed()
        database.fill()
        store.put(("/pods", "default", "q"), _obj("q", "x" * 50_000))
        with pytest.raises(WriteFailed, match="the disk is full; free some space") as failed:
            await store.committed()
        assert failed.value.is_full
        assert str(path) in str(failed.value)
        assert store.get(key) is not None
        assert store.newest(("/pods", "default", "q")) is None
        database.free()
        store.put(("/pods", "default", "r"), _obj("r", "x" * 50_000))
        await store.committed()
        store.close()

    asyncio.run(story())
    assert _opened(path) > 0


def test_requests_on_a_full_disk_hear_so_and_reads_go_on(tmp_path: Path) -> None:
    async def story() -> list[Response]:
        database = _Small(tmp_path / "state.db")
        store = Store(database)
        outside = Environment(
            clock=lambda: 1_767_258_000.0, new_uid=new_uid, random_source=random_source()
        )
        api = Api(store, outside)
        await bootstrap(api)

        async def send(method: str, name: str) -> Response:
            body = {"metadata": {"name": name}, "data": {"a": "x" * 100_000}}
            request = Request(
                method=method,
                path=MAPS,
                headers={"content-type": "application/json"},
                body=orjson.dumps(body) if method == "POST" else b"",
                user=ADMIN,
            )
            return await api.handle(request)

        answers = [await send("POST", "before")]
        database.fill()
        answers += [await send("POST", "full"), await send("GET", "")]
        database.free()
        answers += [await send("POST", "full"), await send("GET", "")]
        store.close()
        return answers

    answers = asyncio.run(story())
    assert [one.code for one in answers] == [201, 507, 200, 201, 200]
    refused = orjson.loads(answers[1].body)
    assert refused["reason"] == "InsufficientStorage"
    assert "the disk is full; free some space and try again" in refused["message"]
    assert len(orjson.loads(answers[4].body)["items"]) == 2
