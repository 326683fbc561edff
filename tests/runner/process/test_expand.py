"""`$(NAME)` as Kubernetes expands it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.runner.process.environment import expand

KNOWN = {"A": "1", "B_C": "two", "EMPTY": "", "NESTED": "$(A)", "with space": "s"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B_C)", "x1ytwo"),
        ("$(EMPTY)", ""),
        ("$(NESTED)", "$(A)"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$(date)", "$(date)"),
        ("$$", "$"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$(A $(B_C)", "$(A $(B_C)"),  # one unknown name, up to the first bracket
        ("$", "$"),
        ("a$", "a$"),
        ("$()", "$()"),
        ("$(with space)", "s"),
        ("echo $$; echo $(date)", "echo $; echo $(date)"),
    ],
)
def test_expand(text: str, expected: str) -> None:
    assert expand(text, KNOWN) == expected


@given(st.text(alphabet="ab $()A\n", max_size=30))
def test_a_text_survives_when_it_is_escaped(text: str) -> None:
    assert expand(text.replace("$", "$$"), KNOWN) == text
