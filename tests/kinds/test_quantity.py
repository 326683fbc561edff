"""Kubernetes quantities, against plain fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.engine.model.resources import UNLIMITED
from unisono.kinds.quantity import (
    NANO,
    Quantity,
    first_of,
    format_amount,
    highest,
    nano,
    parse,
    rounded,
    total,
    written,
)

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
digits = st.text("0123456789", min_size=1, max_size=12)
suffixes = st.one_of(
    st.sampled_from(sorted(SUFFIXES)),
    st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), digits),
)


def oracle(sign: str, whole: str, fraction: str, suffix: str, unit: Fraction) -> int:
    """Multiply out, round away from zero to nano, then to the unit, and cut at 2^63-1."""
    if suffix in SUFFIXES:
        factor = SUFFIXES[suffix]
    else:
        factor = Fraction(10) ** max(-300, min(300, int(suffix[1:])))
    exact = Fraction(f"{whole or 0}.{fraction or 0}") * factor
    in_nano = min(-(-exact * NANO // 1), UNLIMITED * NANO)
    in_units = min(-(-in_nano // (unit * NANO)), UNLIMITED)
    return -int(in_units) if sign == "-" else int(in_units)


@given(st.sampled_from(["", "+", "-"]), digits, st.none() | digits, suffixes, st.booleans())
def test_a_quantity_is_exact(
    sign: str, whole: str, fraction: str | None, suffix: str, milli: bool
) -> None:
    text = f"{sign}{whole}{'' if fraction is None else '.' + fraction}{suffix}"
    unit = Fraction(1, 1000) if milli else Fraction(1)
    assert parse(text, milli=milli) == oracle(sign, whole, fraction or "", suffix, unit)


@given(st.integers(-(2**62), 2**62))
def test_a_bare_integer_is_itself(number: int) -> None:
    assert parse(number, milli=False) == number
    assert parse(str(number), milli=False) == number


@given(st.integers(0, UNLIMITED - 1), st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
def test_printing_and_reading_gives_the_same_amount(amount: int, resource: str) -> None:
    assert Quantity.from_raw(format_amount(amount, resource)).amount(resource) == amount


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        ("1", 1, 1000),
        ("0", 0, 0),
        ("100m", 1, 100),
        ("0.1", 1, 100),
        ("0.5m", 1, 1),  # rounded up to the unit
        ("1.5", 2, 1500),
        ("5.", 5, 5000),
        (".5", 1, 500),
        ("+3", 3, 3000),
        ("-1.5", -2, -1500),  # away from zero
        ("1k", 1000, 10**6),
        ("1Ki", 1024, 1024_000),
        ("64Gi", 64 * 2**30, 64 * 2**30 * 1000),
        ("1E", 10**18, UNLIMITED),
        ("1Ei", 2**60, UNLIMITED),
        ("1E3", 1000, 10**6),
        ("1e3", 1000, 10**6),
        ("1e-3", 1, 1),
        ("1E+2", 100, 100_000),
        ("1n", 1, 1),
        ("0.1n", 1, 1),  # nothing is finer than nano
        ("9223372036854775807", UNLIMITED, UNLIMITED),
        ("9223372036854775808", UNLIMITED, UNLIMITED),  # cut, as Kubernetes does
        ("1e999999999", UNLIMITED, UNLIMITED),
        ("1e-999999999", 1, 1),
        ("0e999999999", 0, 0),
    ],
)
def test_every_way_to_write_one(text: str, units: int, milli: int) -> None:
    assert parse(text, milli=False) == units
    assert parse(text, milli=True) == milli


@pytest.mark.parametrize(
    "text",
    [
        *["", ".", "m", "1 Gi", " 1", "1\n", "1GB", "1gi", "1K", "1kk", "1e", "1e+", "1e1.5"],
        *["0x10", "1_000", "--1", "1-", "Ki", "1Kii", "1,5", "١", "inf", "nan", "1e1e1", "1i"],
    ],
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|suffix"):
        parse(text, milli=False)


def test_messages_name_the_value_and_the_way_out() -> None:
    with pytest.raises(
        ValueError, match=r'"4 GPUs" is not a quantity; write it like 4, 500m or 64Gi'
    ):
        parse("4 GPUs", milli=False)
    with pytest.raises(ValueError, match=r'"64GB" has the unknown suffix GB; known are'):
        parse("64GB", milli=False)
    with pytest.raises(ValueError, match="longer than 64 characters"):
        parse("1" * 65, milli=False)


@pytest.mark.parametrize("raw", [True, None, [], {}, object()])
def test_other_types_are_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="must be a quantity"):
        Quantity.from_raw(raw)


@pytest.mark.parametrize("raw", [float("inf"), float("nan")])
def test_floats_that_are_no_numbers_are_refused(raw: float) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        Quantity.from_raw(raw)


def test_floats_count_as_they_are_printed() -> None:
    assert parse(0.1, milli=True) == 100
    assert parse(1e21, milli=False) == UNLIMITED
    assert parse(1000.0, milli=False) == 1000


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (0, "cpu", "0"),
        (500, "cpu", "500m"),
        (1500, "cpu", "1500m"),
        (128_000, "cpu", "128"),
        (0, "memory", "0"),
        (1000, "memory", "1k"),
        (1024, "memory", "1Ki"),
        (1025, "memory", "1025"),
        (16 * 10**9, "memory", "16G"),
        (3 * 2**40, "memory", "3Ti"),
        (2**30, "hugepages-2Mi", "1Gi"),
        (20 * 2**30, "example.com/gpu-memory", "20Gi"),
        (1024, "nvidia.com/gpu", "1024"),
        (-(2**20), "memory", "-1Mi"),
        (UNLIMITED, "memory", "unlimited"),
        (-UNLIMITED, "cpu", "-unlimited"),
    ],
)
def test_amounts_are_printed_as_people_write_them(amount: int, resource: str, text: str) -> None:
    assert format_amount(amount, resource) == text


def test_cpu_is_counted_in_thousandths_and_all_else_in_units() -> None:
    assert Quantity.from_raw("250m").amount("cpu") == 250
    assert Quantity.from_raw("250m").amount("nvidia.com/gpu") == 1


def test_a_resource_list_is_read_exactly() -> None:
    assert nano({"cpu": Quantity.from_raw("1n"), "gpu": Quantity.from_raw(2)}) == {
        "cpu": 1,
        "gpu": 2 * NANO,
    }


def test_rounding_is_up_and_per_resource() -> None:
    assert rounded({"memory": NANO + 1, "cpu": 1}) == (("cpu", 1), ("memory", 2))


def test_sums_and_maxima_are_over_all_names() -> None:
    lists = [{"a": 1, "b": 5}, {"a": 2}]
    assert total(lists) == {"a": 3, "b": 5}
    assert highest(lists) == {"a": 2, "b": 5}
    assert highest([]) == {}


def test_the_first_list_wins() -> None:
    assert first_of({"a": 1}, {"a": 2, "b": 3}) == {"a": 1, "b": 3}


def test_amounts_are_written_as_people_write_them() -> None:
    assert written(64 * 2**30 * NANO, "memory") == "64Gi memory"
