"""Time never goes back, never stands still, and is in step again after a while."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unisono.runtime.clock import SteadyTime

HOUR = 3600.0


class Machine:
    """The two clocks of a machine, moved by hand."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000.0
        self.elapsed = 50.0
        self.steady = SteadyTime(lambda: self.wall, lambda: self.elapsed)

    def wait(self, seconds: float) -> float:
        self.wall += seconds
        self.elapsed += seconds
        return self.steady.now()


def test_it_is_the_wall_clock_as_long_as_that_is_not_set() -> None:
    machine = Machine()
    assert machine.wait(10) == machine.wall
    assert machine.steady.ahead() == 0


def test_a_clock_that_is_set_forward_is_followed_at_once() -> None:
    machine = Machine()
    machine.wall += HOUR
    assert machine.wait(1) == machine.wall


def test_a_clock_that_is_set_back_is_waited_for_at_half_speed() -> None:
    machine = Machine()
    before = machine.wait(1)
    machine.wall -= HOUR
    assert machine.wait(60) == before + 30
    assert machine.steady.ahead() == HOUR - 30
    assert machine.wait(2 * HOUR - 60) == machine.wall


@given(
    st.lists(
        st.tuples(st.floats(0.001, 1000), st.sampled_from((0.0, HOUR, -HOUR, -7.0, 86_400.0))),
        max_size=30,
    )
)
def test_whatever_is_done_to_the_wall_clock_time_goes_forward(
    steps: list[tuple[float, float]],
) -> None:
    machine = Machine()
    last = machine.steady.now()
    for seconds, jump in steps:
        machine.wall += jump
        now = machine.wait(seconds)
        assert now > last, "it moves"
        assert now >= machine.wall, "and is never late"
        last = now
