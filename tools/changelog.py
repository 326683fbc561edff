"""Move the change notes in `changes/` into `CHANGELOG.md` (`make changelog`).

A note is a file `changes/<slug>.<kind>.md`, one sentence or paragraph in the user's words, best
begun with its area (`**Web page:** …`). Notes are added to the section "Unreleased" under their
kind, beside entries of the same area, and deleted. With `--release VERSION --date DATE` the section
becomes that release.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

# The headings of Keep a Changelog, in its order.
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")

UNRELEASED = "## [Unreleased]"
WIDTH = 100

_NOTE_NAME = re.compile(rf"[a-z0-9][a-z0-9-]*\.({'|'.join(KINDS)})\.md")
_AREA = re.compile(r"- \*\*[^*]+:\*\*")
_SECTION = re.compile(rf"^{re.escape(UNRELEASED)}\n.*?(?=^## |^\[[^\]]+\]: |\Z)", re.M | re.S)


class WrongNote(Exception):
    """A note or the changelog is not as agreed; the message says which and how to mend it."""


def gather(changelog: str, notes: dict[str, str], *, heading: str = UNRELEASED) -> str:
    """Return the changelog with the notes added to its section "Unreleased", under a heading.

    >>> print(gather("# Changes\\n\\n## [Unreleased]\\n", {"pools.added.md": "Pools."}), end="")
    # Changes
    <BLANKLINE>
    ## [Unreleased]
    <BLANKLINE>
    ### Added
    <BLANKLINE>
    - Pools.
    """
    found = _SECTION.findall(changelog)
    if len(found) != 1:
        raise WrongNote(f"CHANGELOG.md needs exactly one heading {UNRELEASED!r}")
    introduction, entries = _parse(found[0])
    for kind, bullet in _new_entries(notes):
        _add(entries.setdefault(kind, []), bullet)
    groups = [
        f"### {kind.capitalize()}\n\n" + "\n".join(entries[kind])
        for kind in KINDS
        if entries.get(kind)
    ]
    section = "\n\n".join([heading, *introduction, *groups])
    if heading != UNRELEASED:
        section = f"{UNRELEASED}\n\n{section}"
    before, after = _SECTION.split(changelog)
    return f"{before}{section}\n" + (f"\n{after}" if after else "")


def _parse(section: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the paragraphs under the heading of a section, and its entries by kind."""
    first, *groups = re.split(r"^### ", section, flags=re.M)
    introduction = [text for text in first.removeprefix(UNRELEASED).strip().split("\n\n") if text]
    entries: dict[str, list[str]] = {}
    for group in groups:
        name, _, body = group.partition("\n")
        if name.strip().lower() not in KINDS:
            raise WrongNote(f"CHANGELOG.md: ### {name.strip()}: use {', '.join(KINDS)}")
        bullets = re.split(r"^(?=- )", body.strip("\n"), flags=re.M)
        entries[name.strip().lower()] = [one.rstrip("\n") for one in bullets if one.strip()]
    return introduction, entries


def _new_entries(notes: dict[str, str]) -> list[tuple[str, str]]:
    """Return the kind and the list item of each note, by the names of their files."""
    added = []
    for name, text in sorted(notes.items()):
        matched = _NOTE_NAME.fullmatch(name)
        if matched is None:
            raise WrongNote(f"changes/{name}: call it <slug>.<{'|'.join(KINDS)}>.md")
        if not text.strip():
            raise WrongNote(f"changes/{name}: is empty; say what changed for the user")
        added.append((matched[1], _bullet(text)))
    return added


def _add(bullets: list[str], bullet: str) -> None:
    """Insert a list item behind the last one of its area, else at the end; once only."""
    if bullet in bullets:
        return
    area = _AREA.match(bullet)
    same = [place for place, one in enumerate(bullets) if area and one.startswith(area[0])]
    bullets.insert(same[-1] + 1 if same else len(bullets), bullet)


def _bullet(text: str) -> str:
    """Return a note as one list item; its paragraphs are joined, its lines wrapped."""
    return textwrap.fill(
        " ".join(text.split()),
        width=WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the changelog of the project in the directory `--root`."""
    parser = argparse.ArgumentParser(description="Gather change notes into CHANGELOG.md.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--release", metavar="VERSION", help="make a release of what is unreleased")
    parser.add_argument("--date", help="the day of the release, YYYY-MM-DD")
    arguments = parser.parse_args(argv)
    if (arguments.release is None) != (arguments.date is None):
        parser.error("--release and --date go together")
    heading = f"## [{arguments.release}] - {arguments.date}" if arguments.release else UNRELEASED

    root: Path = arguments.root
    changelog = root / "CHANGELOG.md"
    files = [path for path in (root / "changes").glob("*.md") if path.name != "README.md"]
    try:
        notes = {path.name: path.read_text(encoding="utf-8") for path in files}
        written = gather(changelog.read_text(encoding="utf-8"), notes, heading=heading)
    except WrongNote as error:
        print(f"changelog: {error}", file=sys.stderr)
        return 2
    changelog.write_text(written, encoding="utf-8")
    for path in files:
        path.unlink()
    print(f"changelog: {len(files)} notes under {heading.removeprefix('## ')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
