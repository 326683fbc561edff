"""The tables of fields hold together."""

from __future__ import annotations

import pytest

from unisono.apiserver.protobuf.decode import message, message_of, texts
from unisono.apiserver.protobuf.fields import KINDS

PLAIN = {
    "bool",
    "bytes",
    "int",
    "intOrString",
    "json",
    "microtime",
    "quantity",
    "string",
    "strings",
    "time",
}
# The deepest is a header of a probe in the template of a cron job; Python allows a thousand calls.
MOST_LEVELS = 16


def _depth(name: str, above: tuple[str, ...] = ()) -> int:
    assert name not in above, f"{name} contains itself: bound the nesting in decode"
    fields = message(name)
    assert fields is not None
    inner = [field.type for field in fields.values() if field.type not in PLAIN]
    return 1 + max((_depth(type_name, (*above, name)) for type_name in inner), default=0)


@pytest.mark.parametrize("name", sorted(texts()))
def test_every_type_is_plain_or_a_message(name: str) -> None:
    fields = message(name)
    assert fields is not None
    for number, field in fields.items():
        assert number > 0
        assert field.type in PLAIN or message(field.type) is not None, field


@pytest.mark.parametrize("name", sorted(texts()))
def test_no_number_and_no_name_is_given_twice(name: str) -> None:
    fields = message(name)
    assert fields is not None
    names = [field.name for field in fields.values()]
    assert len(names) == len(set(names))
    assert len(fields) == texts()[name].count(",") + 1


def test_nesting_is_bounded() -> None:
    assert max(_depth(name) for name in KINDS.values()) <= MOST_LEVELS


def test_every_message_is_used() -> None:
    used = {"DeleteOptions", *KINDS.values()}
    waiting = sorted(used)
    while waiting:
        for field in (message(waiting.pop()) or {}).values():
            if field.type not in PLAIN and field.type not in used:
                used.add(field.type)
                waiting.append(field.type)
    assert used == set(texts())


def test_options_of_a_deletion_come_under_any_version() -> None:
    assert message_of("apps/v1", "DeleteOptions") == "DeleteOptions"
    assert message_of("example.com/v1", "Widget") == ""
