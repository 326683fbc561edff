"""`unisono replay`: make recorded decisions again, compare every byte, and tell one of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.cli.help_format import HelpFormat
from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.engine.flight import Again

EPILOG = """\
examples:
  unisono up --record ~/flights              record what a cluster decides
  unisono replay ~/flights                   the newest recording: is all of it the same again?
  unisono replay ~/flights/000003.flight --at 17
  unisono sim --trace gpu:jobs=500 --policy easy --record /tmp/f && unisono replay /tmp/f

Exit code 0: every decision came out the same, byte for byte; 1: one did not, and the first
difference is shown; 2: there is no such recording or decision; 3: the file is damaged.
"""


# Of a folder of folders so many are named.
_MOST_NAMED = 10


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono replay",
        description="Make recorded decisions again, compare them byte for byte, and tell how one "
        "of them came about.",
        epilog=EPILOG,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    made.add_argument("file", type=Path, metavar="FILE", help="a recording, or a folder of them")
    made.add_argument(
        "--at", type=int, metavar="N", help="explain decision number N (default: the last one)"
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="output format (default: text)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Replay, and say how it went."""
    from unisono.engine.explain.narrate import narrate
    from unisono.engine.flight import replay
    from unisono.runtime.recording import lines_of

    path = _recording(arguments.file)
    count, explained, last = 0, None, 0
    story: list[str] = []
    difference: dict[str, Any] | None = None
    for again, state in replay(lines_of(path)):
        count, last = count + 1, again.number
        if difference is None and not again.is_identical:
            difference = _difference(again)
        if arguments.at is None or again.number == arguments.at:
            explained, story = again.number, list(narrate(state, again.made))
        if arguments.at == again.number:
            break
    if explained is None:
        first = last - count + 1
        what = f"has decisions {first} to {last}" if count else "has no whole decision"
        raise InvalidManifest("--at" if arguments.at is not None else "", f"{path} {what}")
    answer = {
        "file": str(path),
        "decisions": count,
        "identical": difference is None,
        "difference": difference,
        "decision": explained,
        "story": story,
    }
    sys.stdout.write(_shown(answer, arguments.output))
    return 0 if difference is None else 1


def _recording(path: Path) -> Path:
    from unisono.runtime.recording import recordings

    if not path.is_dir():
        return path
    found = recordings(path)
    if not found:
        inside = sorted(one.name for one in path.iterdir() if one.is_dir() and recordings(one))
        where = f"; choose one of {', '.join(inside[:_MOST_NAMED])}" if inside else ""
        raise InvalidManifest("", f"{path} holds no recordings{where}")
    return found[-1]


def _difference(again: Again) -> dict[str, Any]:
    from unisono.engine.flight import encoded, first_difference

    found = first_difference(again.recorded, encoded(again.made))
    path, recorded, made = found if found is not None else ("plan", None, None)
    return {"decision": again.number, "at": path, "recorded": recorded, "made": made}


def _shown(answer: dict[str, Any], form: str) -> str:
    if form != "text":
        from unisono.cli.objects import dump

        return dump(answer, form)
    from unisono.cli.tables import paragraph

    count = answer["decisions"]
    several = f"{count} decision{'s' if count != 1 else ''}"
    difference = answer["difference"]
    if difference is None:
        lines = [f"{several} of {answer['file']}: the same again, byte for byte."]
    else:
        lines = [
            f"{several} of {answer['file']}: decision {difference['decision']} came out otherwise.",
            f"  at        {difference['at']}",
            f"  recorded  {difference['recorded']}",
            f"  now       {difference['made']}",
        ]
    lines += ["", f"Decision {answer['decision']}:"]
    lines += [paragraph(sentence) for sentence in answer["story"]]
    return "\n".join(lines) + "\n"
