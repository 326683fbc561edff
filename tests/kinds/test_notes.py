"""Findings, and the names of warnings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from unisono.kinds.notes import WARNING_CODES, Finding, Notes

KINDS = Path(__file__).resolve().parents[2] / "src" / "unisono" / "kinds"


def codes_in_use() -> Iterator[str]:
    """Yield the first argument of every `notes.warn(…)` and `notes.lenient(…)`."""
    for path in KINDS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in ("warn", "lenient") and len(node.args) == 3:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield str(code.value)


def test_every_warning_has_a_name_that_is_explained() -> None:
    assert set(codes_in_use()) == set(WARNING_CODES)
    assert list(WARNING_CODES) == sorted(WARNING_CODES)


def test_a_finding_is_one_line() -> None:
    finding = Finding(file="f.yaml", document=3, path="spec.x", message="is wrong")
    assert finding.line() == "f.yaml: document 3: spec.x: is wrong"
    whole = Finding(file="f.yaml", document=0, path="", message="is not UTF-8 text")
    assert whole.line() == "f.yaml: is not UTF-8 text"


def test_what_is_forgiven_is_refused_in_strict_mode() -> None:
    for strict in (False, True):
        notes = Notes("f.yaml", 1, strict=strict)
        notes.lenient("PooledGroup", "spec", "is ours")
        assert len(notes.problems) == strict
        assert len(notes.warnings) == (not strict)


def test_only_warnings_have_a_code() -> None:
    notes = Notes("f.yaml", 1, prefix="items[2]")
    notes.problem("spec", "is wrong")
    notes.warn("KindIgnored", "kind", "is ignored")
    notes.misconfigured("asks for too much")
    assert notes.problems == [
        Finding(file="f.yaml", document=1, path="items[2].spec", message="is wrong")
    ]
    assert notes.warnings[0].code == "KindIgnored"
    assert notes.faults == ["asks for too much"]


def test_whatever_a_manifest_holds_stays_on_one_line() -> None:
    notes = Notes("f.yaml", 1)
    notes.problem("labels[a\nb]", 'must not be "x\x1b[31m"')
    assert notes.problems[0].path == "labels[a\\nb]"
    assert notes.problems[0].message == 'must not be "x\\x1b[31m"'
    notes.problem("k" * 10**6, "m" * 10**6)
    assert len(notes.problems[1].line()) < 2100
