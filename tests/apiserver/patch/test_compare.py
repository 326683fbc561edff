"""What differs between two values, at a cost that does not grow with how deep they are."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import effort
from unisono.apiserver.objects import equal, same
from unisono.apiserver.patch.compare import differences
from unisono.apiserver.patch.merge_schema import DEDUCED
from unisono.apiserver.schema.body_checks import MAX_DEPTH
from unisono.kinds.overriding import override

WIDTH = 20
# Of a value: with each of eight levels above it, and a few times by itself.
MOST_COMPARISONS = 24


class Counted(int):
    """A number that counts how often it is compared with another."""

    compared = 0

    @override
    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    @override
    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def _nested(levels: int, innermost: int) -> Any:
    value: Any = innermost
    for _ in range(levels):
        value = {**{f"a{at}": Counted(at) for at in range(WIDTH)}, "z": value}
    return value


def test_each_value_is_compared_a_few_times_however_deep_it_is() -> None:
    levels = MAX_DEPTH - 10
    one, two, other = _nested(levels, 1), _nested(levels, 1), _nested(levels, 2)
    for compare in (
        lambda: same(one, two),
        lambda: equal(one, other),
        lambda: differences(DEDUCED, one, other),
    ):
        Counted.compared = 0
        compare()
        assert Counted.compared <= MOST_COMPARISONS * WIDTH * levels


_PLAIN = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"])
_VALUES = st.recursive(
    _PLAIN,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below),
    max_leaves=12,
)


@effort(200)
@given(old=_VALUES, new=_VALUES)
def test_walking_finds_what_comparing_whole_finds(old: Any, new: Any) -> None:
    if same(old, new):
        assert differences(DEDUCED, old, new, 0) == (None, None)
    else:
        assert differences(DEDUCED, old, new, 0) == differences(DEDUCED, old, new, 200)


@effort(200)
@given(old=_VALUES, new=_VALUES)
def test_two_values_are_the_same_if_their_texts_are(old: Any, new: Any) -> None:
    assert same(old, new) == equal(old, new) == (_text(old) == _text(new))


def _text(value: Any) -> str:
    """Return a value as text that tells true from 1, with keys in order."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_text(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return repr(value)
