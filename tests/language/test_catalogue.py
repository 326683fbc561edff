"""The catalogue: complete, without leftovers, and with the same places in both languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from unisono.cli.top.view import HELP
from unisono.cli.workload_state import MEANINGS
from unisono.language import LANGUAGES
from unisono.language.catalog import PAGE, catalog, sections
from unisono.monitor.rules.alerts import ALERTS

KOREAN = sections("ko")
ASSETS = Path(str(resources.files("unisono.web"))) / "assets"
SOURCES = Path(__file__).resolve().parents[2] / "src" / "unisono"
_PLACE = re.compile(r"\{(\d)[w#*]?\}")
# In `plural(so many, "word")` the word is one of them; the message is "{0} word".
_PLURAL = re.compile(r'plural\((?:[^()"]|\([^()]*\))*, "([^"]+)"\)')
_MESSAGE = re.compile(r'\bt\("((?:[^"\\]|\\.)*)"')
_UNIT = re.compile(r'"(\{0\} (?:h|min|d))"')


def of_the_page() -> set[str]:
    """Return every message in the scripts of the page."""
    found: set[str] = set()
    for script in ASSETS.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        found |= set(_MESSAGE.findall(text)) | set(_UNIT.findall(text))
        found |= {f"{{0}} {word}" for word in _PLURAL.findall(text)}
    return found


def test_every_message_of_the_page_is_there_and_none_besides() -> None:
    used = of_the_page()
    assert len(used) > 400
    assert not used - set(KOREAN[PAGE]), "messages without a translation"
    assert not set(KOREAN[PAGE]) - used, "translations of what is said no more"


@pytest.mark.parametrize("section", KOREAN)
def test_translations_have_the_same_places(section: str) -> None:
    for text, made in KOREAN[section].items():
        assert sorted(_PLACE.findall(text)) == sorted(_PLACE.findall(made)), text
        assert len(set(_PLACE.findall(made))) == len(_PLACE.findall(made)), text


def test_translations_are_korean() -> None:
    for section in KOREAN.values():
        for text, made in section.items():
            if (
                made != text
                and re.search(r"(?<!\.)\b[a-z]{3}", text)
                and re.search(r"[^\W\d]", _PLACE.sub("", made))
            ):
                assert not made or re.search(r"[가-힣]", made), (text, made)


def test_no_message_has_two_translations() -> None:
    said: dict[str, str] = {}
    for name, section in KOREAN.items():
        for text, made in section.items():
            if name != PAGE:
                assert said.setdefault(text, made) == made, text


# ---- messages that Python makes ------------------------------------------------------------------

# Every string of these modules that has words in it is a message for people, but for these.
_MODULES = (
    *("web/actions/gangs.py", "web/actions/nodes.py", "web/actions/queues.py"),
    *("cli/why/sentences.py", "cli/start_times.py"),
)
_NO_MESSAGES = re.compile(
    r"^(unisono|kubectl|echo|/|[a-z]+\.[a-z])|^[ ,;.(]|^[a-z_.-]+$|^\{0\} pod|the case above"
)
_PARTS = {
    *("is pending", "is deactivated", "waits for admission checks", "waits for machines"),
    *("is starting", "is running", "waits for replacement nodes", "is being evicted"),
    *("{0} {1} (for {2})", "{0} of {1} {2} terminating{3}"),
    *("has finished", "starts at about {0} (estimate, no reservation{1})"),
    *("starts by {0} (reserved{1}), if running jobs keep their time limits",),
    # Parts of messages; what they become parts of is recognised as a whole (see below).
    *(": must be", "these gangs lose", "this gang loses", "none of them is of a gang"),
    *("{0} pods: {1}", "{0}; this one is not evaluated yet", "position {0} of {1}"),
    *("{0}, and in a StrictFIFO queue no workload passes the head", "a priority above {0}"),
    *("{0}: {1} (priority {2}) is at the head", "{0} starts or is deleted"),
    *("queueingStrategy BestEffortFIFO, which lets smaller workloads pass",),
    *("room for {0}: a node that joins or becomes free, or {1} coming back",),
    *("{0} pods on it are evicted; {1}.", "unknown: {0}{1} {2} no time limit"),
    *("It waits in queue {0}{1}, in the place of its priority and age.",),
}


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module as messages, with numbers for what is put into them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            numbers = iter(range(10))
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{next(numbers)}}}"
                for part in node.values
            )


@pytest.mark.parametrize("module", _MODULES)
def test_what_a_module_says_is_in_the_catalogue(module: str) -> None:
    known = {_PLACE.sub(r"{\1}", text) for section in KOREAN.values() for text in section}
    missing = [
        text
        for text in _texts(SOURCES / module)
        if " " in _PLACE.sub("", text).strip()
        and not _NO_MESSAGES.search(text)
        and text not in known
        and text not in _PARTS
        and not any(part in text for part in _PARTS if len(part) > 20)
        and catalog("ko").say(_example(text)) == _example(text)
    ]
    assert not missing


def _example(text: str) -> str:
    """Return a message as it could be, with a number in every place."""
    return _PLACE.sub("3", text)


def test_rules_headings_help_and_states_are_in_the_catalogue() -> None:
    korean = catalog("ko")
    said = [one.summary for one in ALERTS]
    said += [line for line in HELP.split("\n") if line]
    said += [f"Job a/b {one.format(queue=' in queue q')}." for one in MEANINGS.values()]
    said += ["NAME", "QUEUE", "STATE", "PENDING", "HEAD OF QUEUE", "WHY", "running", "waiting"]
    for text in said:
        assert korean.say(text) != text, text


def test_english_is_left_alone() -> None:
    assert LANGUAGES == ("en", "ko")
    assert catalog("en").say("Hold job/a") == "Hold job/a"
