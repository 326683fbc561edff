"""The report of an import: each key as mapped, approximated or dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Fate = Literal["mapped", "approximated", "dropped"]


@dataclass(frozen=True, slots=True)
class Line:
    """One key, what it said, and what became of it."""

    fate: Fate
    what: str
    became: str
    place: str = ""


@dataclass(slots=True)
class Report:
    """Collects lines while an import goes on."""

    lines: list[Line] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def mapped(self, what: str, became: str, place: str = "") -> None:
        """Say that something has its exact counterpart."""
        self.lines.append(Line("mapped", what, became, place))

    def approximated(self, what: str, became: str, place: str = "") -> None:
        """Say that something has a counterpart that differs."""
        self.lines.append(Line("approximated", what, became, place))

    def dropped(self, what: str, why: str, place: str = "") -> None:
        """Say that something has no counterpart."""
        self.lines.append(Line("dropped", what, why, place))

    def warn(self, text: str) -> None:
        """Warn of something that the administrator should fix."""
        self.warnings.append(text)

    def of(self, fate: Fate) -> list[Line]:
        """Return the lines of one fate."""
        return [line for line in self.lines if line.fate == fate]

    def text(self) -> str:
        """Return it for people."""
        parts: list[str] = []
        for fate in ("mapped", "approximated", "dropped"):
            lines = self.of(fate)
            parts.append(f"{fate}: {len(lines)}")
            width = max((len(line.what) for line in lines), default=0)
            parts += [
                f"  {line.what:<{width}}  {line.became}"
                + (f"  ({line.place})" if line.place else "")
                for line in lines
            ]
        parts += [f"warning: {text}" for text in self.warnings]
        return "\n".join(parts) + "\n"
