"""The store: what is staged, what is committed, what a watcher can read, what a crash leaves."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from unisono.apiserver.storage import store as store_module
from unisono.apiserver.storage.database import SCHEMA_VERSION, Database, Unusable
from unisono.apiserver.storage.record import Key, Kind
from unisono.apiserver.storage.store import Store, WriteFailed
from unisono.kinds.overriding import override


def _key(name: str, kind: str = "/pods") -> Key:
    return (kind, "default", name)


def _obj(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "uid": f"uid-{name}", **more}}


def _run(story: Callable[[Store], Coroutine[Any, Any, None]], database: Database) -> None:
    async def play() -> None:
        store = Store(database)
        try:
            await story(store)
        finally:
            store.close()

    asyncio.run(play())


def _in_memory(story: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
    _run(story, Database(":memory:"))


def test_readers_see_only_what_is_durable() -> None:
    async def story(store: Store) -> None:
        record = store.put(_key("a"), _obj("a"))
        assert store.newest(_key("a")) is record
        assert store.get(_key("a")) is None
        await store.committed()
        assert store.get(_key("a")) is record
        assert store.rv == record.rv

    _in_memory(story)


def test_versions_grow_over_all_kinds_and_restarts(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    seen: list[int] = []

    async def story(store: Store) -> None:
        seen.append(store.put(_key("a"), _obj("a")).rv)
        seen.append(store.put(_key("a", "/nodes"), _obj("a")).rv)
        await store.committed()
        seen.append(store.remove(_key("a"), _obj("a")).rv)
        await store.committed()

    _run(story, Database(path))
    _run(story, Database(path))
    assert seen == sorted(set(seen))


def test_the_version_of_a_deleted_event_is_not_given_out_again(tmp_path: Path) -> None:
    # Events leave no trace in the log; the counter alone remembers them.
    path = tmp_path / "state.db"
    seen: list[int] = []

    async def story(store: Store) -> None:
        seen.append(store.put(_key("e", "/events"), _obj("e")).rv)
        seen.append(store.remove(_key("e", "/events"), _obj("e")).rv)
        await store.committed()

    _run(story, Database(path))
    _run(story, Database(path))
    assert seen == [1, 2, 3, 4]


def test_writes_of_one_turn_share_a_commit() -> None:
    batches: list[int] = []

    class Counting(Database):
        @override
        def commit(self, batch: Any, trim_to: int) -> None:
            batches.append(len(batch))
            super().commit(batch, trim_to)

    async def story(store: Store) -> None:
        async def write(name: str) -> None:
            store.put(_key(name), _obj(name))
            await store.committed()

        await asyncio.gather(*(write(f"p{number}") for number in range(20)))

    _run(story, Counting(":memory:"))
    assert batches == [20]


def test_a_failed_commit_takes_back_everything_staged_since() -> None:
    class Full(Database):
        is_full = False

        @override
        def commit(self, batch: Any, trim_to: int) -> None:
            if self.is_full:
                raise sqlite3.OperationalError("database or disk is full")
            super().commit(batch, trim_to)

    database = Full(":memory:")

    async def story(store: Store) -> None:
        store.put(_key("a"), _obj("a"))
        await store.committed()
        database.is_full = True
        store.put(_key("a"), _obj("a", labels={"x": "1"}))
        store.put(_key("b"), _obj("b"))
        waiting = asyncio.ensure_future(store.committed())
        await asyncio.sleep(0)
        store.put(_key("c"), _obj("c"))  # decided on what will not have happened
        with pytest.raises(WriteFailed, match="disk is full"):
            await store.committed()
        with pytest.raises(WriteFailed):
            await waiting
        assert [record.name for record in store.listing("/pods")] == ["a"]
        assert store.newest(_key("b")) is None
        assert store.newest(_key("c")) is None
        assert len(store.history("/pods")) == 1
        database.is_full = False
        later = store.put(_key("b"), _obj("b"))
        await store.committed()
        assert store.get(_key("b")) is later

    _run(story, database)


def test_a_history_is_read_from_any_version_on() -> None:
    async def story(store: Store) -> None:
        first = store.put(_key("a"), _obj("a")).rv
        store.put(_key("n", "/nodes"), _obj("n"))
        store.put(_key("a"), _obj("a", labels={"x": "1"}))
        store.remove(_key("a"), _obj("a", labels={"x": "1"}))
        await store.committed()
        changes = store.history("/pods").after(first)
        assert [change.kind for change in changes] == [Kind.MODIFIED, Kind.DELETED]
        assert changes[0].previous is not None
        assert changes[0].previous.rv == first
        assert changes[1].record.load()["metadata"]["resourceVersion"] == str(changes[1].rv)

    _in_memory(story)


def test_the_past_is_bounded_and_says_where_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_HISTORY_CHANGES", 100)

    async def story(store: Store) -> None:
        quiet = store.put(_key("n", "/nodes"), _obj("n")).rv
        for number in range(300):
            store.put(_key("a"), _obj("a", labels={"n": str(number)}))
            await store.committed()
        history = store.history("/pods")
        assert len(history) <= 100
        assert history.complete_after >= 200
        assert store.listing_at("/pods", history.complete_after - 1) is None
        # Nothing happened to nodes since, so nothing of theirs is lost once it is dropped.
        assert store.history("/nodes").complete_after == quiet

    _in_memory(story)


def test_a_listing_as_of_a_version() -> None:
    async def story(store: Store) -> None:
        for name in ("a", "b"):
            store.put(_key(name), _obj(name))
        await store.committed()
        then = store.rv
        store.remove(_key("a"), _obj("a"))
        store.put(_key("b"), _obj("b", labels={"x": "1"}))
        store.put(_key("c"), _obj("c"))
        await store.committed()
        past = store.listing_at("/pods", then)
        assert past is not None
        assert [(one.name, dict(one.labels)) for one in past] == [("a", {}), ("b", {})]

    _in_memory(story)


def test_watches_go_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    versions: list[int] = []

    async def before(store: Store) -> None:
        versions.append(store.put(_key("a"), _obj("a")).rv)
        store.put(_key("a"), _obj("a", labels={"x": "1"}))
        await store.committed()

    async def after(store: Store) -> None:
        changes = store.history("/pods").after(versions[0])
        assert [change.kind for change in changes] == [Kind.MODIFIED]
        assert store.history("/events").complete_after == store.rv  # of events nothing is kept

    _run(before, Database(path))
    _run(after, Database(path))


def test_the_log_file_is_trimmed_with_the_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_HISTORY_CHANGES", 50)
    path = tmp_path / "state.db"

    async def story(store: Store) -> None:
        for number in range(500):
            store.put(_key("a"), _obj("a", labels={"n": str(number)}))
            await store.committed()

    _run(story, Database(path))
    with sqlite3.connect(path) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM log").fetchone()
    assert rows <= 60


def test_a_file_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = Database(path)
    database.set_meta("schema", str(SCHEMA_VERSION + 1))
    database.close()
    with pytest.raises(Unusable, match="newer Unisono"):
        Database(path)


def test_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"this is not a database, it is a shopping list" * 100)
    with pytest.raises(Unusable, match="not a database of ours"):
        Database(path)


def test_others_cannot_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    Database(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_cancelled_writer_does_not_take_the_batch_along() -> None:
    async def story(store: Store) -> None:
        store.put(_key("a"), _obj("a"))
        impatient = asyncio.ensure_future(store.committed())
        await asyncio.sleep(0)
        impatient.cancel()
        store.put(_key("b"), _obj("b"))
        await store.committed()
        assert [one.name for one in store.listing("/pods")] == ["a", "b"]

    _in_memory(story)


def test_a_pause_is_used_to_tidy_up_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(store_module, "_UNSETTLED_BYTES", 0)
    path = tmp_path / "state.db"

    def in_main_file() -> int:
        with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as file:
            try:
                return int(file.execute("SELECT count(*) FROM obj").fetchone()[0])
            except sqlite3.DatabaseError:
                return 0  # not even the table is there, or the file is just being written

    async def story(store: Store) -> None:
        store.put(_key("a"), _obj("a"))
        await store.committed()
        assert in_main_file() == 0
        async with asyncio.timeout(10):
            while in_main_file() == 0:
                await asyncio.sleep(0.01)

    _run(story, Database(path))


def test_versions_go_on_after_a_deletion_that_is_not_logged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    last: list[int] = []

    async def before(store: Store) -> None:
        store.put(_key("e", "/events"), _obj("e"))
        last.append(store.remove(_key("e", "/events"), _obj("e")).rv)
        await store.committed()

    async def after(store: Store) -> None:
        assert store.get(_key("e", "/events")) is None
        assert store.put(_key("p"), _obj("p")).rv == last[0] + 1
        await store.committed()

    _run(before, Database(path))
    _run(after, Database(path))


def test_a_batch_is_stored_whole_whatever_its_size(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    names = [f"p{number:03}" for number in range(150)]

    async def before(store: Store) -> None:
        for name in names:
            store.put(_key(name), _obj(name))
            store.put(_key(name), _obj(name, labels={"x": name}))
        store.remove(_key("p000"), _obj("p000"))
        await store.committed()

    async def after(store: Store) -> None:
        assert [record.name for record in store.listing("/pods")] == names[1:]
        assert all(record.labels == {"x": record.name} for record in store.listing("/pods"))
        assert len(store.history("/pods")) == 301

    _run(before, Database(path))
    _run(after, Database(path))


def test_a_stamp_changes_with_what_is_staged_and_when_it_is_taken_back() -> None:
    class Full(Database):
        is_full = False

        @override
        def commit(self, batch: Any, trim_to: int) -> None:
            if self.is_full:
                raise sqlite3.OperationalError("database or disk is full")
            super().commit(batch, trim_to)

    database = Full(":memory:")

    async def story(store: Store) -> None:
        seen = [store.stamp("/pods")]
        store.put(_key("a"), _obj("a"))
        seen.append(store.stamp("/pods"))
        await store.committed()
        assert store.stamp("/pods") == seen[-1]
        database.is_full = True
        store.put(_key("b"), _obj("b"))
        seen.append(store.stamp("/pods"))
        with pytest.raises(WriteFailed):
            await store.committed()
        seen.append(store.stamp("/pods"))
        assert len(set(seen)) == 4

    _run(story, database)
