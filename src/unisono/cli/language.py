"""The language of what commands print for people: English, or Korean where LANG says so.

Forms for programs (`-o json`, names, reasons, conditions) have none.
"""

from __future__ import annotations

import os

from unisono.language import Language, language_of


def language() -> Language:
    """Return the language of this terminal."""
    return language_of(os.environ)


def say(text: str) -> str:
    """Return a message or a sentence in the language of this terminal."""
    chosen = language()
    if chosen == "en":
        return text
    from unisono.language.catalog import catalog

    return catalog(chosen).say(text)
