"""Messages in the language of their reader: English, or Korean where it is asked for (ADR 0037).

The English text of a message is its name. The catalogue (`ko.json`) has its translation; `{0}`,
`{1}` … stand for what a message is about, and may change places. Programs read JSON, reasons and
conditions, which have no language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


def language_of(environment: Mapping[str, str]) -> Language:
    """Return the language of a terminal, as POSIX and GNU read it.

    >>> language_of({"LANG": "ko_KR.UTF-8"}), language_of({"LANG": "ko", "LC_ALL": "C"})
    ('ko', 'en')
    >>> language_of({"LANG": "de_DE.UTF-8"}), language_of({"LANG": "en", "LANGUAGE": "ko:en"})
    ('en', 'ko')
    """
    named = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    if not named or named.partition(".")[0] in ("C", "POSIX"):
        return "en"
    wanted = [*(environment.get("LANGUAGE") or "").split(":"), named]
    return next((found for one in wanted if (found := _known(one)) is not None), "en")


def _known(tag: str) -> Language | None:
    primary = tag.replace("_", "-").partition("-")[0].partition(".")[0].lower()
    return next((one for one in LANGUAGES if one == primary), None)
