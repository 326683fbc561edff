"""Stories of faults are summed up."""

from __future__ import annotations

import msgspec

from tests.real.verdicts import Verdict, told


def _story(**changed: float) -> Verdict:
    made = Verdict(
        faults={"leaders killed": 1, "requests lost": 1200},
        gangs=2,
        pods=6,
        looks=500,
        longest_partial_s=7.25,
        most_partial_s=90.0,
        too_long=0,
        double_bookings=0,
        lost=0,
        seconds=60.4,
    )
    return msgspec.structs.replace(made, **changed)


def test_what_went_wrong_in_one_story_is_in_the_sum() -> None:
    assert told([_story(), _story(lost=1, too_long=1, longest_partial_s=91.0)]) == (
        "fault stories: 2 told to the end, 4 gangs of 12 pods, "
        "1,000 looks at all of them in 121 s\n"
        "  faults: 2,400 requests lost, 2 leaders killed\n"
        "  in pieces beyond 90 s: 1 gangs (longest 91.0 s); double bookings: 0; lost workloads: 1"
    )
