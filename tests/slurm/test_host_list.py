"""Host lists, spec slurm §2 and scenario 20."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.slurm.host_list import BadHostList, expand, fold

WRITTEN = "n[1-3,7],gpu[08-10],x[1-2]-[1-2],login"


def test_every_form_is_expanded_in_the_order_written() -> None:
    names = expand(WRITTEN)
    assert len(names) == 12
    assert names[:6] == ["n1", "n2", "n3", "n7", "gpu08", "gpu09"]


def test_folding_gives_an_equal_set_back() -> None:
    assert set(expand(fold(expand(WRITTEN)))) == set(expand(WRITTEN))
    assert fold(["gpu08", "gpu09", "gpu10"]) == "gpu[08-10]"


@given(st.lists(st.from_regex(r"[a-c]{1,2}(-?[0-9]{1,4}){0,2}", fullmatch=True), max_size=30))
def test_nothing_is_lost_and_nothing_is_added(names: list[str]) -> None:
    assert sorted(expand(fold(names))) == sorted(set(names))


@pytest.mark.parametrize("text", ["n[1-3", "n1]", "n[3-1]", "n[a]", "n[1-999999999]", "n[[1]]"])
def test_refuses_invalid_host_lists(text: str) -> None:
    with pytest.raises(BadHostList):
        expand(text)
