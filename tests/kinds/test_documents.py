"""Files to documents: YAML and JSON, lists, limits, and one line per trouble."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.documents import MAX_FILE_BYTES, Documents, read_documents

OBJECT = "apiVersion: v1\nkind: Pod\n"


def read(content: str | bytes) -> Documents:
    return read_documents("f.yaml", content.encode() if isinstance(content, str) else content)


def problems(content: str | bytes) -> list[str]:
    found = read(content)
    return [problem.line() for problem in found.problems]


def test_documents_are_numbered_as_people_count_them() -> None:
    found = read(f"{OBJECT}---\n# empty\n---\n{OBJECT}---\n{{}}\n---\n{OBJECT}")
    assert [document.number for document in found.documents] == [1, 3, 5]
    assert found.problems == found.warnings == []
    assert found.documents[0].file == "f.yaml"
    assert found.documents[0].api_version == "v1"
    assert found.documents[0].kind == "Pod"


@pytest.mark.parametrize(
    "content", ["", "\n", "---\n", "# comment\n", "---\n---\n", b"\xef\xbb\xbf"]
)
def test_nothing_is_fine(content: str | bytes) -> None:
    found = read(content)
    assert not found.documents
    assert not found.problems
    assert not found.warnings


def test_json_is_read_and_may_be_followed_by_more() -> None:
    one = json.dumps({"apiVersion": "v1", "kind": "Pod", "n": 1})
    two = json.dumps({"apiVersion": "v1", "kind": "Pod", "n": 2})
    found = read(f"\n {one}\n{two} ")
    assert [document.raw["n"] for document in found.documents] == [1, 2]
    assert [document.number for document in found.documents] == [1, 2]


def test_yaml_may_start_with_a_brace_or_a_byte_order_mark() -> None:
    assert len(read("{apiVersion: v1, kind: Pod}\n---\n" + OBJECT).documents) == 2
    assert len(read(b"\xef\xbb\xbf" + OBJECT.encode()).documents) == 1


def test_lists_are_taken_apart() -> None:
    found = read(
        """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: a}}
- apiVersion: batch/v1
  kind: JobList
  items:
  - {metadata: {name: b}}
- {just: data}
- 5
"""
    )
    assert [(one.kind, one.api_version, one.prefix) for one in found.documents] == [
        ("Pod", "v1", "items[0]"),
        ("Job", "batch/v1", "items[1].items[0]"),
    ]
    assert [warning.path for warning in found.warnings] == ["items[2]"]
    assert [problem.line() for problem in found.problems] == [
        "f.yaml: document 1: items[3]: must be an object, not the number 5"
    ]


def test_findings_in_a_list_name_the_member() -> None:
    found = read("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod}]}")
    notes = found.documents[0].notes()
    notes.problem("spec.x", "is wrong")
    notes.problem("", "is wrong")
    assert [problem.path for problem in notes.problems] == ["items[0].spec.x", "items[0]"]


def test_an_empty_list_is_empty() -> None:
    assert read("{apiVersion: v1, kind: List, items: []}").documents == []


def test_a_kind_that_only_ends_like_a_list_is_an_object() -> None:
    found = read("{apiVersion: x/v1, kind: AllowList, spec: {}}")
    assert [document.kind for document in found.documents] == ["AllowList"]


def test_what_is_no_object_of_kubernetes_is_skipped_with_a_warning() -> None:
    found = read("groups:\n- name: gpu-alerts\n")
    assert not found.documents
    assert not found.problems
    assert [(one.code, one.line()) for one in found.warnings] == [
        ("NotAKubernetesObject", "f.yaml: document 1: not a Kubernetes object; skipped")
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("kind: Pod", "f.yaml: document 1: apiVersion: is required"),
        ("apiVersion: v1", "f.yaml: document 1: kind: is required"),
        ("apiVersion: v1\nkind:", "f.yaml: document 1: kind: is required"),
        (
            "apiVersion: 1\nkind: Pod",
            "f.yaml: document 1: apiVersion: must be a string that is not empty, not the number 1",
        ),
        (
            "apiVersion: v1\nkind: ''",
            'f.yaml: document 1: kind: must be a string that is not empty, not the string ""',
        ),
        ("- a", "f.yaml: document 1: must be an object, not a list"),
        ("just text", 'f.yaml: document 1: must be an object, not the string "just text"'),
        ('{"a": 1, "a": 2}', 'f.yaml: document 1: key "a" stands twice in the same object'),
        ('{"a": NaN}', "f.yaml: document 1: NaN is not a number that JSON allows"),
        (
            '{"apiVersion": "v1", "kind": "Pod"}}',
            "f.yaml: document 2: line 1, column 36: Expecting value",
        ),
        (
            "a: {b: 1, b: 2}",
            'f.yaml: document 1: line 1, column 11: key "b" stands twice in the same mapping',
        ),
        (b"a: \xff\xfe", "f.yaml: is not UTF-8 text: byte 0xff at offset 3"),
        (b"\x00\x00\xfe\xff", "f.yaml: is not UTF-8 text: byte 0xfe at offset 2"),
    ],
)
def test_one_line_per_problem(content: str | bytes, line: str) -> None:
    assert problems(content) == [line]


def test_json_that_is_neither_json_nor_yaml_gets_the_json_error() -> None:
    (line,) = problems('{"a": 1,\n "b": }: [')
    assert line == "f.yaml: document 1: line 2, column 7: Expecting value"


def test_what_was_readable_before_an_error_is_kept() -> None:
    found = read(f"{OBJECT}---\na: [\n")
    assert len(found.documents) == 1
    assert [problem.document for problem in found.problems] == [2]


@pytest.mark.parametrize(
    "content",
    ['{"a":' * 100_000, '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "{a: " * 1000 + "}" * 1000],
)
def test_depth_is_bounded_in_json(content: str) -> None:
    (line,) = problems(content)
    assert "nested deeper than 64 levels" in line or "Expecting" in line


def test_json_of_the_greatest_depth_is_read() -> None:
    lists = 62
    text = '{"apiVersion": "v1", "kind": "Pod", "a": ' + "[" * lists + "1" + "]" * lists + "}"
    assert problems(text) == []
    (line,) = problems(text.replace("1]", "[1]]"))
    assert "nested deeper than 64 levels" in line


def test_an_absurd_integer_is_refused() -> None:
    (line,) = problems('{"a": ' + "9" * 10_000 + "}")
    assert "Exceeds the limit" in line


def test_a_large_file_is_not_even_parsed() -> None:
    (line,) = problems(b"a" * (50 * 2**20))
    assert line == "f.yaml: is larger than 16 MiB, the most that is read; split it"
    (line,) = problems(b" " * (MAX_FILE_BYTES + 1))
    assert "larger than 16 MiB" in line


@pytest.mark.slow
def test_a_file_with_too_many_documents_ends() -> None:
    (line,) = problems("---\n" * 100_002)
    assert line == "f.yaml: has more than 100,000 documents"


@given(st.binary(max_size=80))
def test_no_bytes_make_it_raise(content: bytes) -> None:
    for problem in read(content).problems:
        assert "\n" not in problem.line()
