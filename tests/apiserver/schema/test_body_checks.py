"""Keys that a document gives twice."""

from __future__ import annotations

import pytest

from unisono.apiserver.schema.body_checks import duplicate_fields


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (b"{}", []),
        (b'{"a": 1, "b": {"a": 1}}', []),
        (b'{"a": 1, "a": 1, "a": 2}', ["a"]),
        (
            b'{"spec": {"x": [{}, {"y": 1, "y": 2}]}, "spec2": {"z": 1, "z": 1}}',
            ["spec.x[1].y", "spec2.z"],
        ),
        (b'[{"a": 1, "a": 2}]', ["[0].a"]),
        (b"not json", []),
        (b"\xff", []),
        (b"[" * 100_000, []),
        (b"1", []),
    ],
)
def test_paths(body: bytes, paths: list[str]) -> None:
    assert duplicate_fields(body) == paths


def test_what_the_last_one_hides_is_not_reported() -> None:
    assert duplicate_fields(b'{"a": {"b": 1, "b": 2}, "a": {}}') == ["a"]


def test_a_hostile_document_gets_a_short_list() -> None:
    twice = b",".join(b'{"a":1,"a":1}' for _ in range(1000))
    assert len(duplicate_fields(b"[" + twice + b"]")) <= 21
