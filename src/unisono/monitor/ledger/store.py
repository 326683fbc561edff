"""The file of the ledger: four tables of rows in SQLite, written in batches.

Rows are only added and completed, never deleted. A row is one JSON text beside the columns that
questions ask by, so a new field needs no new table.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from unisono.engine.model.errors import UnisonoError
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow

_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS pods (
    key TEXT PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL, row BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS workloads (
    key TEXT PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL, row BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes (
    key TEXT PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL, row BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queues (
    key TEXT PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL, row BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pods_until ON pods (until, since);
CREATE INDEX IF NOT EXISTS workloads_until ON workloads (until, since);
CREATE INDEX IF NOT EXISTS nodes_until ON nodes (until, since);
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
# Later than any time: an open row ends after everything.
_OPEN = 1 << 62
_AT_ONCE = 1_000  # rows that are read together

_TABLE: dict[type[Row], str] = {
    PodRow: "pods",
    WorkloadRow: "workloads",
    NodeRow: "nodes",
    QueueRow: "queues",
}

R = TypeVar("R", PodRow, WorkloadRow, NodeRow, QueueRow)


class LedgerError(UnisonoError):
    """The file cannot be used; the message says why."""


class LedgerStore:
    """One file."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        """Open it; create it if it is missing and may be written."""
        self._path = path
        self._lock = threading.Lock()  # one batch after the other, whichever thread writes it
        try:
            where = f"file:{path}?mode={'ro' if is_read_only else 'rwc'}"
            self._db = sqlite3.connect(where, uri=True, check_same_thread=False)
            self._db.execute("PRAGMA busy_timeout = 5000")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise LedgerError(f"{path} was written by a newer version of Unisono")
            if not is_read_only:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.executescript(_TABLES)
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
                path.chmod(0o600)  # it names users and what they run
        except (sqlite3.Error, OSError) as error:
            message = f"{path} cannot be used as a ledger: {error}"
            raise LedgerError(f"{message}; free some space, or move it away") from error

    def write(self, rows: Iterable[Row], seen: int, measured: int = 0) -> None:
        """Write rows, all or none of them, and until when the cluster was followed (measured)."""
        by_table: dict[str, list[tuple[str, int, int, bytes]]] = {}
        for row in rows:
            by_table.setdefault(_table(type(row)), []).append(_columns(row))
        put = "INSERT OR REPLACE INTO {} VALUES (?, ?, ?, ?)"
        try:
            with self._lock, self._db:
                for table, columns in by_table.items():
                    self._db.executemany(put.format(table), columns)
                keep = "INSERT OR REPLACE INTO kept VALUES (?, ?)"
                self._db.execute(keep, ("seen", seen))
                if measured:
                    self._db.execute(keep, ("measured", measured))
        except sqlite3.Error as error:
            raise LedgerError(str(error)) from error

    def seen(self) -> int:
        """Return until when the cluster was followed; 0 if it never was."""
        return self._kept("seen")

    def measured(self) -> int:
        """Return until when utilization was measured; 0 if it never was."""
        return self._kept("measured")

    def _kept(self, name: str) -> int:
        with self._readable():
            found = self._db.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
            return int(found[0]) if found else 0

    def first(self) -> int:
        """Return since when there is something to tell of; later than any time if there is not."""
        with self._readable():
            (found,) = self._db.execute("SELECT min(since) FROM nodes").fetchone()
        return _OPEN if found is None else int(found)

    def open_rows(self, kind: type[R]) -> Iterator[R]:
        """Yield the rows that have not ended."""
        return self._read(kind, "until = ?", (_OPEN,))

    def within(self, kind: type[R], since: int, until: int) -> Iterator[R]:
        """Yield the rows that touch a period."""
        return self._read(kind, "until >= ? AND since < ?", (since, until))

    def pods(self, uids: Iterable[str]) -> Iterator[PodRow]:
        """Yield the rows of some pods."""
        for uid in uids:
            yield from self._read(PodRow, "key = ?", (uid,))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _read(self, kind: type[R], condition: str, values: tuple[int | str, ...]) -> Iterator[R]:
        # As one list of many: that is read much faster than one row after the other.
        decode = msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]  # a type at run time
        question = f"SELECT row FROM {_table(kind)} WHERE {condition} ORDER BY since, key"
        with self._readable():
            found = self._db.execute(question, values)
            while rows := found.fetchmany(_AT_ONCE):
                yield from decode(b"[" + b",".join([text for (text,) in rows]) + b"]")

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Say what is wrong with the file if it is damaged."""
        try:
            yield
        except (sqlite3.Error, msgspec.DecodeError) as error:
            message = f"{self._path} is damaged ({error}); move it away to begin a new ledger"
            raise LedgerError(message) from error


def _table(kind: type[Row]) -> str:
    return _TABLE[kind]


def _columns(row: Row) -> tuple[str, int, int, bytes]:
    text = msgspec.json.encode(row)
    match row:
        case PodRow():
            return row.uid, row.bound, row.ended or _OPEN, text
        case WorkloadRow():
            return f"{row.uid}/{row.attempt}", row.since, row.ended or _OPEN, text
        case NodeRow():
            return f"{row.uid}/{row.since}", row.since, row.until or _OPEN, text
        case QueueRow():
            key = f"{row.queue}/{row.flavor}/{row.since}"
            return key, row.since, row.until or _OPEN, text
