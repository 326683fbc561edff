"""The bridge's mark of a job: its state, kept in the AdminComment across restarts of Slurm.

    unisono:gate priority=10000 | needs 2 GPUs, 1 is free on n1
    ──────┬───── ──────┬──────── ─────────────┬────────────────
       state        values               for users

| state | means |
| --- | --- |
| `gate` | held at submission; it waits for its reservation |
| `hold` | its user, or an administrator, holds it; nothing is reserved |
| `pinned` | it has its reservation, and may be released to exactly those nodes |
| `placeholder` | a job of the bridge that occupies GPUs of other pods |

Users cannot write an AdminComment, so a mark can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

PREFIX = "unisono:"
GATE, HOLD, PINNED, PLACEHOLDER = "gate", "hold", "pinned", "placeholder"
STATES = (GATE, HOLD, PINNED, PLACEHOLDER)
# Longer reasons are cut: squeue and humans read them.
MOST_TEXT = 400


class Mark(msgspec.Struct, frozen=True):
    """A mark, read."""

    state: str = ""  # empty: no mark of ours
    words: Mapping[str, str] = {}
    text: str = ""

    def written(self) -> str:
        """Return it as it is stored; an equal sign or a line break in a reason does no harm."""
        words = "".join(f" {key}={value}" for key, value in sorted(self.words.items()))
        text = " ".join(self.text.split())[:MOST_TEXT]
        return f"{PREFIX}{self.state}{words}" + (f" | {text}" if text else "")


def read_mark(comment: str) -> Mark:
    """Read a comment; one that is not ours is no mark.

    >>> read_mark("unisono:gate priority=7 | needs a=b").words
    {'priority': '7'}
    >>> read_mark("please be quick").state
    ''
    """
    if not comment.startswith(PREFIX):
        return Mark()
    head, _, text = comment.removeprefix(PREFIX).partition(" | ")
    state, *rest = head.split()
    words = dict(word.split("=", 1) for word in rest if "=" in word)
    return Mark(state, words, text) if state in STATES else Mark()
