"""Named tuples that load nothing behave as those of `typing`."""

from __future__ import annotations

import typing

import pytest

from unisono.slurm import lite_typing


def both() -> list[typing.Any]:
    """Return the same class twice."""

    class Ours(lite_typing.NamedTuple):
        name: str
        index: int = 3  # type: ignore[assignment]  # also the name of a method of tuples

    class Theirs(typing.NamedTuple):
        name: str
        index: int = 3  # type: ignore[assignment]  # as above

    return [Ours, Theirs]


def test_behaves_as_the_named_tuple_of_typing() -> None:
    for made in both():
        one = made("a")
        assert one == ("a", 3) == made(name="a") == made("a", index=3)
        assert (one.name, one.index) == ("a", 3)
        assert one._replace(index=4) == ("a", 4)
        assert repr(one).endswith("(name='a', index=3)")
        match one:
            case made(name, index=3):
                assert name == "a"
            case _:
                raise AssertionError(one)


def test_refuses_missing_and_surplus_fields() -> None:
    for made in both():
        for wrong in (made, lambda made=made: made("a", 3, 4), lambda made=made: made("a", x=1)):
            with pytest.raises(TypeError):
                wrong()
