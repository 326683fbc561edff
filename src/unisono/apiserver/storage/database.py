"""The SQLite file: opened once, loaded at the start, written by one thread.

    obj   every object in its newest version
    log   changes that a watch may still ask for, oldest first
    meta  schema version, the resource version of the last deletion, the cluster's uid

Events and Leases are not in the log: their churn is what makes such files grow without end.
Objects are stored apart from their keys, not in one tree sorted by key: rows of kilobytes in the
inner nodes of a tree make every commit write nearly twice as much. Files with the older layout work
as they are.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
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

# One statement writes a whole batch, which is then a transaction by itself: each statement gives
# Python's lock away, and has to wait for the event loop to get it back. The triggers are this
# connection's own and not in the file.
_CHANGES = f"""
CREATE TEMP VIEW change (rv, kind, namespace, name, type, data) AS SELECT 0, '', '', '', '', '';
CREATE TEMP TRIGGER kept INSTEAD OF INSERT ON change WHEN NEW.type <> '{Kind.DELETED}' BEGIN
    INSERT INTO obj VALUES (NEW.kind, NEW.namespace, NEW.name, NEW.rv, NEW.data)
    ON CONFLICT (kind, namespace, name) DO UPDATE SET rv = excluded.rv, data = excluded.data;
END;
CREATE TEMP TRIGGER gone INSTEAD OF INSERT ON change WHEN NEW.type = '{Kind.DELETED}' BEGIN
    DELETE FROM obj WHERE kind = NEW.kind AND namespace = NEW.namespace AND name = NEW.name;
    INSERT OR REPLACE INTO meta VALUES ('rv', NEW.rv);
END;
CREATE TEMP TRIGGER told INSTEAD OF INSERT ON change
WHEN NEW.kind NOT IN ({", ".join(f"'{kind}'" for kind in sorted(UNLOGGED))}) BEGIN
    INSERT INTO log VALUES (NEW.rv, NEW.kind, NEW.namespace, NEW.name, NEW.type, NEW.data);
END;
"""
# So many rows in one statement; those of all sizes stay prepared.
_ROWS_AT_ONCE = 32
_ROW = "(?, ?, ?, ?, ?, ?)"


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
        self._connection.executescript(_CHANGES)
        self._trimmed_to = 0
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

    def commit(self, batch: Sequence[Change], trim_to: int) -> None:
        """Write changes in one transaction, or none of them."""
        rows = [
            (change.rv, *change.record.key, change.kind.value, change.record.data)
            for change in batch
        ]
        if len(rows) <= _ROWS_AT_ONCE and trim_to <= self._trimmed_to:
            self._insert(rows)
            return
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                self._insert(rows[start : start + _ROWS_AT_ONCE])
            is_trimmed = self._trim(trim_to, _TRIM_ROWS + 2 * len(batch))
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        if is_trimmed:
            self._trimmed_to = trim_to

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        places = ", ".join([_ROW] * len(rows))
        values = [value for row in rows for value in row]
        self._connection.execute(f"INSERT INTO change VALUES {places}", values)

    def _trim(self, trim_to: int, most: int) -> bool:
        """Forget some of the past up to a version; say whether that was all of it."""
        if trim_to <= self._trimmed_to:
            return False
        statement = (
            "DELETE FROM log WHERE rv IN (SELECT rv FROM log WHERE rv <= ? ORDER BY rv LIMIT ?)"
        )
        return self._connection.execute(statement, (trim_to, most)).rowcount < most

    def settle(self) -> None:
        """Copy what was written into the main file, as far as nothing is in the way."""
        # On a full disk it stays where it is; whoever writes next is told.
        with contextlib.suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
