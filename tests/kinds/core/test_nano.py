"""Resource lists in nano-units."""

from __future__ import annotations

from unisono.kinds.core.nano import first_of, highest, nano, rounded, total, written
from unisono.kinds.quantity import NANO, Quantity


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
