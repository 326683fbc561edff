"""The list of entries: its order, its length, its times."""

from __future__ import annotations

from unisono.apiserver.patch.managed_fields import (
    ANCIENT,
    MAX_UPDATE_ENTRIES,
    Entries,
    ManagerKey,
    Owned,
    applier,
    cap,
    read_entries,
    timestamp,
    updater,
    write_entries,
)


def _owned(name: str, seconds: int, version: str = "v1") -> Owned:
    return Owned({f"f:{name}": {}}, version, timestamp(seconds))


def test_order() -> None:
    entries: Entries = {
        updater("late", "v1", ""): _owned("a", 20),
        updater("b", "v1", ""): _owned("b", 10),
        updater("a", "v2", ""): _owned("c", 10, "v2"),
        updater("a", "v1", "status"): _owned("d", 10),
        updater("a", "v1", ""): _owned("e", 10),
        applier("z", ""): _owned("f", 30),
        updater("timeless", "v1", ""): Owned({"f:g": {}}, "v1", ""),
        updater("empty", "v1", ""): Owned({}, "v1", timestamp(0)),
    }
    written = write_entries(entries)
    assert [
        (one["operation"], one["manager"], one["apiVersion"], one.get("subresource"))
        for one in written
    ] == [
        ("Apply", "z", "v1", None),
        ("Update", "timeless", "v1", None),
        ("Update", "a", "v1", None),
        ("Update", "a", "v1", "status"),
        ("Update", "a", "v2", None),
        ("Update", "b", "v1", None),
        ("Update", "late", "v1", None),
    ]
    assert "time" not in written[1]
    assert write_entries(read_entries(written, is_trusted=True)) == written
    assert write_entries(read_entries(written, is_trusted=False)) == written


def test_a_manager_without_a_name_is_unknown() -> None:
    assert applier("", "") == ManagerKey("unknown", "Apply", "", "")
    assert updater("", "v1", "").manager == "unknown"


def _updates(count: int, version: str = "v1", since: int = 0) -> Entries:
    return {
        updater(f"{version}-{number:02}", version, ""): _owned(f"{number}", since + number, version)
        for number in range(count)
    }


def test_ten_updaters_are_kept() -> None:
    entries = _updates(MAX_UPDATE_ENTRIES)
    entries[applier("a", "")] = _owned("x", 0)
    cap(entries)
    assert len(entries) == MAX_UPDATE_ENTRIES + 1


def test_the_oldest_updaters_become_one() -> None:
    entries = _updates(13)
    cap(entries)
    assert len(entries) == MAX_UPDATE_ENTRIES
    ancient = entries[updater(ANCIENT, "v1", "")]
    assert ancient.fields == {f"f:{number}": {} for number in (0, 1, 2, 3)}
    assert ancient.time == timestamp(3)  # of the youngest that was merged
    assert write_entries(entries)[0]["manager"] == ANCIENT


def test_what_is_ancient_already_takes_more() -> None:
    entries = _updates(11)
    cap(entries)
    entries[updater("new", "v1", "")] = _owned("new", 50)
    cap(entries)
    assert len(entries) == MAX_UPDATE_ENTRIES
    assert set(entries[updater(ANCIENT, "v1", "")].fields) == {"f:0", "f:1", "f:2"}


def test_versions_are_not_mixed() -> None:
    entries = {**_updates(6, "v1"), **_updates(6, "v2", since=100)}
    cap(entries)
    assert len(entries) == MAX_UPDATE_ENTRIES
    assert updater(ANCIENT, "v1", "") in entries
    assert updater(ANCIENT, "v2", "") not in entries


def test_nothing_is_lost_when_the_ancient_entry_is_not_the_oldest() -> None:
    """Within one second the names decide, and one can sort before the ancient entry."""
    entries: Entries = {updater(ANCIENT, "v1", ""): _owned("old", 5)}
    for number in range(11):
        entries[updater(f"aaa-{number:02}", "v1", "")] = _owned(f"{number}", 5)
    before = {key for owned in entries.values() for key in owned.fields}
    cap(entries)
    assert len(entries) == MAX_UPDATE_ENTRIES
    assert {key for owned in entries.values() for key in owned.fields} == before
