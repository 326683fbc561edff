"""Amounts in Kubernetes' canonical form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.apiserver.schema.fill import canonical
from unisono.kinds.quantity import Quantity


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1000m", "1"),
        ("1", "1"),
        ("1.0", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Mi", "1000Mi"),
        ("512Mi", "512Mi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100000000", "100M"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e2", "100"),
        ("12e4", "120e3"),
        ("0", "0"),
        ("0Gi", "0"),
        ("-1000m", "-1"),
        ("+5", "5"),
        ("1n", "1m"),
        ("1100u", "2m"),
        ("8E", "8E"),
    ],
)
def test_canonical(text: str, form: str) -> None:
    assert canonical(text, in_thousandths=True) == form


def test_finer_amounts_survive_where_they_are_no_resource() -> None:
    assert canonical("1n", in_thousandths=False) == "1n"


def test_what_is_no_amount_is_refused() -> None:
    for text in ("", "1 Gi", "ten", "1Xi"):
        with pytest.raises(ValueError, match=r"quantity|suffix"):
            canonical(text, in_thousandths=True)


@given(st.integers(-(10**7), 10**7), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3"]))
def test_the_amount_stays_and_so_does_the_form(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    once = canonical(text, in_thousandths=True)
    assert Quantity.from_raw(once).nano == Quantity.from_raw(text).nano
    assert canonical(once, in_thousandths=True) == once
