"""The SQLite file: opened once, loaded at the start, written by one thread.

    obj   every object in its newest version
    log   changes that a watch may still ask for, oldest first
    meta  schema version, the last resource version, the cluster's uid

Events and Leases are not in the log: their churn is what makes such files grow without end.
Objects are stored apart from their keys, not in one tree sorted by key: rows of kilobytes in the
inner nodes of a tree make every commit write nearly twice as much. Files with the older layout work
as they are.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from unisono.apiserver.storage.record import Change, Kind, Record

SCHEMA_VERSION = 1
UNLOGGED = frozenset({"/events", "coordination.k8s.io/leases"})

# Trimming in small steps keeps every commit short.
_TRIM_ROWS = 500
# Copying what was written into the main file takes tens of milliseconds. It is done in a quiet
# moment (`settle`); a commit has to do it only after so many pages (32 MiB) without one.
_MOST_UNSETTLED_PAGES = 8000

_TABLES = """
CREATE TABLE IF NOT EXISTS obj (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    rv INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
);
CREATE TABLE IF NOT EXISTS log (
    rv INTEGER PRIMARY KEY, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    type TEXT NOT NULL, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

# Few different sizes, so that the statements stay prepared.
_ROWS_AT_ONCE = (64, 16, 4, 1)


class Unusable(Exception):
    """The file cannot serve as our store; the message says why and what to do."""


class Database:
    """One open file. Everything but `load` runs on the writer's thread."""

    def __init__(self, path: Path | str, *, is_power_safe: bool = True) -> None:
        """Open or create the file; ":memory:" keeps nothing.

        Without `is_power_safe` an acknowledged write survives a killed process, but perhaps not a
        power cut.
        """
        if path != ":memory:":
            # Not through umask alone: SQLite makes its side files with the mode of the main one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(is_power_safe=is_power_safe)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise Unusable(f"{path} is not a database of ours: {error}") from error
        except Unusable:
            self._connection.close()
            raise

    def _prepare(self, *, is_power_safe: bool) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {'FULL' if is_power_safe else 'NORMAL'}")
        run("PRAGMA busy_timeout = 5000")
        run(f"PRAGMA wal_autocheckpoint = {_MOST_UNSETTLED_PAGES}")
        run("PRAGMA cache_size = -2048")  # objects are kept in memory; pages need not be
        self._connection.executescript(_TABLES)
        version = int(self.meta("schema") or SCHEMA_VERSION)
        if version > SCHEMA_VERSION:
            raise Unusable(
                f"{self.path} was written by a newer Unisono (format {version}, this one knows "
                f"{SCHEMA_VERSION}); use that version, or another --data-dir"
            )
        self.set_meta("schema", str(SCHEMA_VERSION))

    def close(self) -> None:
        """Tidy up and let go of the file."""
        self._connection.execute("PRAGMA optimize")
        self._connection.close()

    def meta(self, key: str) -> str:
        """Return a remembered value; empty if there is none."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_meta(self, key: str, value: str) -> None:
        """Remember a value."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def load(self) -> tuple[int, list[Record]]:
        """Return the last resource version that was given out, and all objects."""
        rows = self._connection.execute("SELECT kind, namespace, name, rv, data FROM obj")
        records = [
            Record((kind, namespace, name), rv, data, orjson.loads(data)["metadata"])
            for kind, namespace, name, rv, data in rows
        ]
        newest = max((record.rv for record in records), default=0)
        return max(newest, int(self.meta("rv") or 0)), records

    def history(self) -> Iterator[Change]:
        """Yield what the log holds, oldest first; what was before is not known."""
        rows = self._connection.execute("SELECT rv, kind, namespace, name, type, data FROM log")
        for rv, kind, namespace, name, type_, data in rows:
            metadata = orjson.loads(data)["metadata"]
            yield Change(rv, Kind(type_), Record((kind, namespace, name), rv, data, metadata), None)

    def commit(self, batch: Sequence[Change], newest: int, trim_to: int) -> None:
        """Write changes in one transaction, or none of them."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            self._write(batch)
            run("INSERT OR REPLACE INTO meta VALUES ('rv', ?)", (str(newest),))
            run(
                "DELETE FROM log WHERE rv IN "
                "(SELECT rv FROM log WHERE rv <= ? ORDER BY rv LIMIT ?)",
                (trim_to, _TRIM_ROWS + 2 * len(batch)),
            )
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def settle(self) -> None:
        """Copy what was written into the main file, as far as nothing is in the way."""
        # On a full disk it stays where it is; whoever writes next is told.
        with contextlib.suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _write(self, batch: Iterable[Change]) -> None:
        many = self._connection.executemany
        # Of several changes to one object in a batch only the last is its state.
        last = {change.record.key: change for change in batch}
        self._insert(
            "INSERT OR REPLACE INTO obj VALUES",
            [
                (*change.record.key, change.rv, change.record.data)
                for change in last.values()
                if change.kind is not Kind.DELETED
            ],
        )
        many(
            "DELETE FROM obj WHERE kind = ? AND namespace = ? AND name = ?",
            [change.record.key for change in last.values() if change.kind is Kind.DELETED],
        )
        self._insert(
            "INSERT INTO log VALUES",
            [
                (change.rv, *change.record.key, change.kind.value, change.record.data)
                for change in batch
                if change.record.key[0] not in UNLOGGED
            ],
        )

    def _insert(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows, many with each statement.

        Python's other threads may run while a statement does, and ours then has to wait until
        they let go; a statement for every row would wait for each of them.
        """
        start = 0
        for size in _ROWS_AT_ONCE:
            while len(rows) - start >= size:
                some = rows[start : start + size]
                places = f"({', '.join('?' * len(some[0]))})"
                values = [value for row in some for value in row]
                self._connection.execute(f"{statement} {', '.join([places] * size)}", values)
                start += size
