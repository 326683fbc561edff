"""Check a commit message: a short subject, and a body (the hook `commit-msg` of pre-commit).

Git hands the file with the message to the hook. Messages that Git composes (merges, reverts,
`fixup!` and `squash!` for a later rebase) pass.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

SUBJECT_LENGTH = 72

_COMPOSED = re.compile(r"(Merge |Revert |fixup! |squash! |amend! )")
_SCISSORS = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)
_TRAILER = re.compile(r"[A-Z][A-Za-z]*(-[A-Za-z]+)+: \S")


def problems(message: str) -> list[str]:
    """Return what is wrong with a commit message, as sentences.

    >>> problems("fix(quota): count lent cells\\n\\nThey were counted twice; see the new test.")
    []
    """
    lines = [line.rstrip() for line in _without_comments(message).strip().split("\n")]
    subject, rest = lines[0], lines[1:]
    if not subject:
        return ["the message is empty"]
    if _COMPOSED.match(subject):
        return []
    found = []
    if len(subject) > SUBJECT_LENGTH:
        found.append(f"the subject has {len(subject)} characters, {SUBJECT_LENGTH} are allowed")
    if rest and rest[0]:
        found.append("the second line is not blank; it separates the subject from the body")
    if not any(line and not _TRAILER.match(line) for line in rest):
        found.append("there is no body: say why, and how it was checked")
    return found


def _without_comments(message: str) -> str:
    kept = _SCISSORS.sub("", message)
    return "\n".join(line for line in kept.split("\n") if not line.startswith("#"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong with the message in the file that is the only argument."""
    (name,) = sys.argv[1:] if arguments is None else arguments
    found = problems(Path(name).read_text(encoding="utf-8"))
    for problem in found:
        print(f"commit message: {problem}", file=sys.stderr)
    if found:
        print(
            f'commit message: yours is kept; go on with: git commit -eF "{name}"', file=sys.stderr
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
