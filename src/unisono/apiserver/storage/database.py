"""The SQLite file: opened once, loaded at the start, written by one thread.

    obj   every object in its newest version
    log   changes that a watch may still ask for, oldest first
    meta  schema version, the resource version of the last deletion, the cluster's uid

Beside it, `state.db.acknowledged` says up to which version changes were acknowledged, and what all
objects together look like then (`_Acknowledged`). SQLite reads a write-ahead log up to the first
frame that is damaged and forgets the rest without a word; and no page has a checksum. So what was
read at the start is compared with that, and a file that has lost something is refused. The log has
a checksum there, too: one that is not what it was is emptied, and watches begin anew.

Events and Leases are not in the log: their churn is what makes such files grow without end.
Objects are stored apart from their keys, not in one tree sorted by key: rows of kilobytes in the
inner nodes of a tree make every commit write nearly twice as much. Files with the older layout work
as they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import zlib
from collections import deque
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


def is_full(error: BaseException) -> bool:
    """Say whether a write failed because there is no room for it."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL


def _locked(path: Path | str) -> int:
    """Open the file, which stays locked for as long as it is open.

    This lock is on the file itself, whatever becomes of any other. Not through umask alone: SQLite
    makes its side files with the mode of the main one.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        message = f"{path}: {error.strerror}; give it back to this user, or choose --data-dir"
        raise Unusable(message) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        folder = Path(path).parent
        message = f"another process writes to it; stop it with: unisono down --data-dir {folder}"
        raise Unusable(f"{path}: {message}") from error
    return handle


def _what_to_do(path: Path | str, error: sqlite3.Error | None) -> str:
    """Say in one sentence what is wrong with a file and what comes next."""
    code = 0xFF & getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL:
        return f"{path}: the disk is full; free some space and start again"
    if code == sqlite3.SQLITE_READONLY:
        return f"{path}: cannot be written; make its folder writable, or choose another --data-dir"
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a database of ours; move it away, or choose another --data-dir"
    if code in (0, sqlite3.SQLITE_CORRUPT):
        return (
            f"{path} is damaged; restore its folder from a backup, or move {path} and "
            f"{path}.acknowledged away to begin anew"
        )
    next_step = "free some space if the disk is full, or choose another --data-dir"
    return f"{path} cannot be used: {error}; {next_step}"


class _Acknowledged:
    """The last version that was acknowledged, and a checksum over all objects at that version.

    One line, written in place after each commit and before any client is told: it needs no room on
    the disk, and no fsync. After a power cut it may be behind the database, never ahead of it where
    writes are safe from that; then only the version is compared. The checksum is the exclusive or
    of those of all objects, so a change costs the same however many there are.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sum = 0
        self._said: tuple[int, int, int, int] | None = None  # what the line said at the start
        # Of each change in the log; those that may be trimmed are let go.
        self._logged: deque[tuple[int, int]] = deque()
        self._logged_sum = self._logged_after = 0
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        os.close(self._handle)

    def check(self, database: Path | str, last: int, records: Iterable[Record]) -> None:
        """Compare what was read with what was acknowledged, and go on from there."""
        self._sum = 0
        for record in records:
            self._sum ^= _sum_of(record)
        stored = os.pread(self._handle, 128, 0)
        if stored:
            self._said = self._read(stored)
            acknowledged, checksum, _, _ = self._said
            if last < acknowledged:
                raise Unusable(
                    f"{database} has lost changes that were acknowledged: it ends at version {last}"
                    f", {acknowledged} was told; its write-ahead log is damaged or gone. Restore "
                    f"the folder from a backup, or go on without them: rm {self._path}"
                )
            if last == acknowledged and checksum != self._sum:
                raise Unusable(
                    f"{database} is damaged: its objects are not those of version {last}. Restore "
                    f"the folder from a backup, or go on with what is there: rm {self._path}"
                )

    def check_log(self, last: int, changes: Sequence[Change]) -> Sequence[Change]:
        """Return the changes of the log that are known to be what was written; go on from there.

        All or none: a watch must not miss one. After a power cut it is unknown.
        """
        found: Sequence[Change] = ()
        if self._said is not None and self._said[0] == last:
            _, _, after, checksum = self._said
            found = [change for change in changes if change.rv > after]
            self._log(found)
            if self._logged_sum == checksum:
                self._logged_after = after
            else:
                found = ()
        if not found:
            self._logged.clear()
            self._logged_sum, self._logged_after = 0, last
        try:
            self._write(last)
        except OSError as error:
            raise Unusable(
                f"{self._path}: {error.strerror}; free some space and start again"
            ) from error
        return found

    def _log(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.record.key[0] not in UNLOGGED:
                checksum = zlib.crc32(change.kind.value.encode(), _sum_of(change.record))
                self._logged.append((change.rv, checksum))
                self._logged_sum ^= checksum

    def note(self, batch: Sequence[Change], trim_to: int) -> None:
        """Take over changes that are durable, and that the log is trimmed up to a version."""
        self._log(batch)
        while self._logged and self._logged[0][0] <= trim_to:
            self._logged_sum ^= self._logged.popleft()[1]
        self._logged_after = max(self._logged_after, trim_to)
        for change in batch:
            if change.previous is not None:
                self._sum ^= _sum_of(change.previous)
            if change.kind is not Kind.DELETED:
                self._sum ^= _sum_of(change.record)
        # The changes are stored, whatever becomes of this; an older line says nothing wrong.
        with contextlib.suppress(OSError):
            self._write(batch[-1].rv)

    def _write(self, version: int) -> None:
        body = b"%020d %08x %020d %08x" % (
            version,
            self._sum,
            self._logged_after,
            self._logged_sum,
        )
        os.pwrite(self._handle, b"%b %08x\n" % (body, zlib.crc32(body)), 0)

    def _read(self, stored: bytes) -> tuple[int, int, int, int]:
        body, _, check = stored.strip().rpartition(b" ")
        try:
            if zlib.crc32(body) == int(check, 16):
                # Lines of older versions end here: they say nothing of the log.
                version, checksum, *log = body.split(b" ")
                after, of_log = log or (version, b"0")
                return int(version), int(checksum, 16), int(after), int(of_log, 16)
        except ValueError:
            pass
        raise Unusable(
            f"{self._path} is damaged, so changes may be missing; restore the "
            f"folder from a backup, or go on with what is there: rm {self._path}"
        )


def _sum_of(record: Record) -> int:
    return zlib.crc32(record.data, zlib.crc32(repr((record.key, record.rv)).encode()))


class Database:
    """One open file. Everything but `load` runs on the writer's thread."""

    def __init__(self, path: Path | str, *, is_power_safe: bool = True) -> None:
        """Open or create the file; ":memory:" keeps nothing.

        Without `is_power_safe` an acknowledged write survives a killed process, but perhaps not a
        power cut.
        """
        self.path = path
        self._handle = -1 if path == ":memory:" else _locked(path)
        self._acknowledged: _Acknowledged | None = None
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(is_power_safe=is_power_safe)
            if path != ":memory:":
                self._acknowledged = _Acknowledged(Path(f"{path}.acknowledged"))
        except sqlite3.Error as error:
            self._let_go()
            raise Unusable(_what_to_do(path, error)) from error
        except OSError as error:
            self._let_go()
            raise Unusable(f"{error.filename or path}: {error.strerror}") from error
        except Unusable:
            self._let_go()
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
        version = self.meta("schema")
        if version and version != str(SCHEMA_VERSION):
            raise Unusable(
                f"{self.path} was written by a newer Unisono (format {version}, this one knows "
                f"{SCHEMA_VERSION}); use that version, or another --data-dir"
            )
        if not version:
            self.set_meta("schema", str(SCHEMA_VERSION))

    def close(self) -> None:
        """Tidy up and let go of the file."""
        # On a full disk there is nothing to tidy up.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA optimize")
        self._let_go()

    def _let_go(self) -> None:
        if self._acknowledged is not None:
            self._acknowledged.close()
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def is_in_place(self) -> bool:
        """Say whether the file at our path is still the one that we write to."""
        if self._handle < 0:
            return True
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._handle))

    def meta(self, key: str) -> str:
        """Return a remembered value; empty if there is none."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_meta(self, key: str, value: str) -> None:
        """Remember a value."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def load(self) -> tuple[int, list[Record]]:
        """Return the last resource version that was given out, and all objects.

        Raises `Unusable` if anything that was acknowledged is missing or damaged.
        """
        try:
            rows = self._connection.execute("SELECT kind, namespace, name, rv, data FROM obj")
            records = [
                Record((kind, namespace, name), rv, data, orjson.loads(data)["metadata"])
                for kind, namespace, name, rv, data in rows
            ]
            newest = max((record.rv for record in records), default=0)
            last = max(newest, int(self.meta("rv") or 0))
            if self._acknowledged is not None:
                self._acknowledged.check(self.path, last, records)
        except sqlite3.Error as error:
            raise Unusable(_what_to_do(self.path, error)) from error
        except (ValueError, TypeError, KeyError) as error:  # what is there is none of our objects
            raise Unusable(_what_to_do(self.path, None)) from error
        return last, records

    def history(self, last: int) -> Sequence[Change]:
        """Return what the log holds, oldest first; what was before is not known.

        `last` is the last version that was loaded. A log that is not what it was is emptied.
        """
        try:
            try:
                found: Sequence[Change] = [*self._logged()]
            except (ValueError, TypeError, KeyError):  # what is there is none of our changes
                found = ()
            if self._acknowledged is not None:
                found = self._acknowledged.check_log(last, found)
            if not found:
                self._connection.execute("DELETE FROM log")
        except sqlite3.Error as error:
            raise Unusable(_what_to_do(self.path, error)) from error
        return found

    def _logged(self) -> Iterator[Change]:
        statement = "SELECT rv, kind, namespace, name, type, data FROM log ORDER BY rv"
        for rv, kind, namespace, name, type_, data in self._connection.execute(statement):
            metadata = orjson.loads(data)["metadata"]
            record = Record((kind, namespace, name), rv, data, metadata)
            yield Change(rv, Kind(type_), record, None)

    def commit(self, batch: Sequence[Change], trim_to: int) -> None:
        """Write changes in one transaction, or none of them."""
        self._write(batch, trim_to)
        if self._acknowledged is not None:
            self._acknowledged.note(batch, trim_to)

    def _write(self, batch: Sequence[Change], trim_to: int) -> None:
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
        # On a full disk it stays where it is; the next write is refused.
        with contextlib.suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
