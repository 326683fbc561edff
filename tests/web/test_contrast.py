"""Contrast, computed from the custom properties of the styles, in light and dark (WCAG 2, AA)."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

ASSETS = Path(str(resources.files("unisono.web"))) / "assets"
STYLE = (ASSETS / "style.css").read_text(encoding="utf-8")
PAGES = (ASSETS / "pages.css").read_text(encoding="utf-8")
_PROPERTY = re.compile(r"--([\w-]+):\s*(#[0-9a-fA-F]{6})\b")
_TEXT, _GRAPHIC = 4.5, 3.0

# Colours of letters, with everything that they stand on.
LETTERS = {
    "ink": ("paper", "card", "sunk", "bad-soft", "warn-soft"),
    "soft": ("paper", "card", "sunk"),
    "accent": ("paper", "card", "accent-soft", "sunk"),
    "warn": ("card", "warn-soft"),
    "bad": ("card", "bad-soft", "paper"),
    "card": ("accent", "bad"),  # the main button, and a grave one
    "paper": ("ink",),  # what was done
    "on-own": tuple(f"c{number}" for number in range(8)),  # names on bars
}
# Signs without letters, with what is beside them.
SIGNS = {
    "focus": ("paper", "card"),
    "held": ("card",),
    "down": ("card",),
    "edge": ("card", "paper"),  # around squares of the map, whose inner colours are pale
    **{f"c{number}": ("card", "paper") for number in range(8)},
}


def theme(selector: str) -> dict[str, str]:
    """Return the properties of a theme."""
    at = STYLE.index(selector)
    block = STYLE[at : STYLE.index("}", at)]
    return dict(_PROPERTY.findall(block))


LIGHT = theme(":root {")
DARK = theme(':root[data-theme="dark"] {')
THEMES = {"light": LIGHT, "dark": DARK}


def light(colour: str) -> float:
    """Return the relative luminance of a colour."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: str, other: str) -> float:
    """Return the contrast of two colours.

    >>> ratio("#000000", "#ffffff")
    21.0
    """
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_letters_stand_out(name: str) -> None:
    colours = THEMES[name]
    low = {
        (front, ground): round(found, 2)
        for front, grounds in LETTERS.items()
        for ground in grounds
        if (found := ratio(colours[front], colours[ground])) < _TEXT
    }
    assert not low


@pytest.mark.parametrize("name", THEMES)
def test_signs_stand_out(name: str) -> None:
    colours = THEMES[name]
    low = {
        (front, ground): round(found, 2)
        for front, grounds in SIGNS.items()
        for ground in grounds
        if (found := ratio(colours[front], colours[ground])) < _GRAPHIC
    }
    assert not low


def test_both_ways_to_dark_are_the_same() -> None:
    """The system may prefer it, or the reader choose it."""
    assert theme(':root:not([data-theme="light"])') == DARK
    assert set(DARK) == set(LIGHT)


def test_every_colour_of_letters_is_judged() -> None:
    used = set(re.findall(r"(?<![-\w])color:\s*var\(--([\w-]+)\)", STYLE + PAGES))
    # A line of the last half hour: a sign, though it takes its colour from the letters.
    assert used - {"c0"} <= set(LETTERS)


def test_no_colour_is_written_beside_the_properties() -> None:
    for text in (STYLE.partition("* { box-sizing")[2], PAGES):
        assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", text)
