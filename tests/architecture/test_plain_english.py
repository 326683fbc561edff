"""Workloads, nodes and objects are things: no text of ours says "who" of them.

The check reads whole files, so identifiers count as well, word by word. Allowed are people
(`PEOPLE`), a `whose` that follows the thing it belongs to ("a label whose value is empty",
`test_a_pod_whose_node_dies`), and the phrases of `ALLOWED`.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "unisono"

_PERSONAL = (
    "who|whoever|whom|whomever|whose|somebody|someone|nobody|everybody|everyone|anybody|anyone"
)
_WORD = re.compile(rf"(?<![A-Za-z])(?:{_PERSONAL})(?![A-Za-z])", re.IGNORECASE)
_JOINED = re.compile(r"(?<=[A-Za-z])_(?=[A-Za-z])")  # the words of an identifier

# A space, or a line break inside a comment, a docstring or a wrapped paragraph.
_GAP = r"[\s#*/|>\"'`]+"

PEOPLE = (
    "admin|administrator|attacker|author|colleague|contributor|developer|engineer|maintainer|"
    "member|newcomer|operator|owner|people|person|reader|researcher|reviewer|stranger|team|user|"
    "visitor"
)
# Words before "whose" that name nothing: what follows them is a person, or is unnamed.
_NO_THING = (
    "all|and|any|anything|as|by|every|for|from|in|is|nothing|of|on|one|ones|only|or|say|says|some|"
    "that|the|them|those|to|which|with"
)
_ALLOWED_ANYWHERE = re.compile(
    rf"\b(?:{PEOPLE})s?,?{_GAP}who(?:m|se)?\b"
    rf"|\b(?!(?:{_NO_THING})\b)[\w.`)\]>-]*\w[`)\]]*,?{_GAP}whose\b",
    re.IGNORECASE,
)

# Phrases about people, by file. Each is looked for as it stands, over line breaks too.
ALLOWED: dict[str, tuple[str, ...]] = {
    # What a person asks of the API, and an account that is not there.
    "tests/kubectl/transcripts/08-access.console": ("Who am I",),
    "tests/decisions/areas/time.py": ('"nobody"',),
    # A field of stored explanations, which keeps its name.
    "docs/reference/explanations.md": ("`whom`",),
    # Names of fields in what is written.
    "src/unisono/engine/model/explanation.py": ('"whom"', '"whose"'),
    "tests/decisions/adapter.py": ("reserved_for:whom", "member:whose"),
}


_SUFFIXES = {".py", ".js", ".css", ".html", ".json", ".lua", ".svg"}
_TEST_SUFFIXES = {".py", ".yaml", ".md", ".console", ".txt"}
TEXTS = sorted(
    [
        *(path for path in PACKAGE.rglob("*") if path.suffix in _SUFFIXES),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("docs/**/*.svg"),
        *ROOT.glob("*.md"),
        *ROOT.glob("*.toml"),
        ROOT / "Makefile",
        *ROOT.glob("deploy/**/*.yaml"),
        *ROOT.glob("examples/**/*.yaml"),
        *ROOT.glob("changes/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("deploy/*.md"),
        # Recorded decisions and golden files of data are not texts of ours.
        *(
            path
            for path in ROOT.glob("tests/**/*")
            if path.suffix in _TEST_SUFFIXES and path != Path(__file__).resolve()
        ),
        *(path for path in ROOT.glob("bench/**/*") if path.suffix in _SUFFIXES),
        *(path for path in ROOT.glob("tools/**/*") if path.suffix in _SUFFIXES),
    ]
)


def _words(text: str) -> str:
    """Return a text of the same length whose identifiers are words."""
    return _JOINED.sub(" ", text)


def _personal_lines(name: str, text: str) -> list[str]:
    """Return the lines that speak of things as people, each with the place where it stands."""
    text = _words(text)
    if _WORD.search(text) is None:
        return []
    phrases = [re.escape(_words(phrase)).replace(r"\ ", _GAP) for phrase in ALLOWED.get(name, ())]
    allowed = [
        match.span()
        for pattern in (_ALLOWED_ANYWHERE, *map(re.compile, phrases))
        for match in pattern.finditer(text)
    ]
    lines = []
    for match in _WORD.finditer(text):
        if any(start <= match.start() and match.end() <= end for start, end in allowed):
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        line = text[start:].partition("\n")[0].strip()
        number = text.count("\n", 0, match.start()) + 1
        if len(line) > 200:  # the data of the schemas
            line = f"…{text[max(0, match.start() - 60) : match.end() + 60]}…"
        lines.append(f"{name}:{number}: {line}")
    return lines


def test_only_people_are_who() -> None:
    found = [
        line
        for path in TEXTS
        for line in _personal_lines(
            path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        )
    ]
    assert not found, "name the thing, and say what it does:\n" + "\n".join(found)


def test_allowed_phrases_are_still_there() -> None:
    for name, phrases in ALLOWED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for phrase in phrases:
            pattern = re.escape(phrase).replace(r"\ ", _GAP)
            assert re.search(pattern, text), f"{name} no longer says {phrase!r}"


@pytest.mark.parametrize(
    "text",
    [
        "Return who has to leave.",
        "nobody waits",
        "those whose turn it is",
        "the workload who waits",
        "x = who_leaves",
        "say whose nodes these are",
        "everybody else starts",
    ],
)
def test_things_are_refused(text: str) -> None:
    assert _personal_lines("a.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "the user who submitted it",
        "# for people\n    # who read it at night",
        "a label whose value is empty",
        "the victims\nwhose eviction lets the request fit",
        "`kubectl auth whoami`",
    ],
)
def test_people_and_relative_clauses_pass(text: str) -> None:
    assert not _personal_lines("a.py", text)


# Words of our own that the engine gave up for the field's (docs/glossary.md). Identifiers are
# checked: prose may say that a node is shared by tenants, and recordings keep names of fields.
_GIVEN_UP = (
    "agenda|barred|crowd|desk|doors?|fence|filing|guests?|household|keeper|lenders?|"
    "markets?|outlook|parked|rehearsal|rota|seat(?:s|ing)?|shelf|sits?|sleepers?|stalled|tall(?:y|ies)|"
    "tenan(?:t|ts|cy)|twins?|unstall|wares|wish(?:es)?"
)
_OLD_WORD = re.compile(rf"(?:^|_)(?:{_GIVEN_UP})(?:_|$)")
# What the shell gave up. It still has a tally of pods, and fences and tenancy in what it stores.
_GIVEN_UP_BY_THE_SHELL = (
    "adrift|agenda|awaiting|barred|crowd|desk|doors?|errands?|filing|guests?|hearing|household|"
    "inert|janitor|letting|loans|lots|manner|markets?|outlook|parked|prospects|rehearsal|rota|"
    "seat(?:s|ing)?|shelf|sits?|sleepers?|standing|stretches|tenants?|twins?|unexamined|untried|"
    "wares|wish(?:es)?"
)
_OLD_WORD_OF_THE_SHELL = re.compile(rf"(?:^|_)(?:{_GIVEN_UP_BY_THE_SHELL})(?:_|$)")
SHELL = sorted(path for path in PACKAGE.rglob("*.py") if "engine" not in path.parts)
ENGINE = sorted(
    path
    for folder in ("src/unisono/engine", "tests/engine", "tests/properties", "tests/scenarios")
    for path in (ROOT / folder).rglob("*.py")
)


def _old_names(text: str, given_up: re.Pattern[str] = _OLD_WORD) -> list[str]:
    """Return the identifiers that contain a word which was given up."""
    names = {
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME
    }
    words = {name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in names}
    return sorted(name for name in names if given_up.search(words[name]))


def test_the_engine_speaks_the_words_of_the_field() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in ENGINE
        if (names := _old_names(path.read_text(encoding="utf-8")))
    }
    assert not found, "the glossary has the field's words for these"


def test_the_shell_speaks_the_words_of_the_field() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in SHELL
        if (names := _old_names(path.read_text(encoding="utf-8"), _OLD_WORD_OF_THE_SHELL))
    }
    assert not found, "the glossary has the field's words for these"


@pytest.mark.parametrize("name", ["_lenders", "SleeperIndex", "market_of", "test_a_stalled_queue"])
def test_old_words_are_found_in_identifiers(name: str) -> None:
    assert _old_names(f"{name} = 1\n") == [name]


@pytest.mark.parametrize("text", ["installed = 1\n", "# a tenant\n", "stall = {'market': 1}\n"])
def test_other_names_and_prose_pass(text: str) -> None:
    assert not _old_names(text)
