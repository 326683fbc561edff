"""Typical and large pods, learned from what was admitted."""

from __future__ import annotations

import random

from tests.support.placement_builders import GPU
from unisono.engine.model.resources import amounts, share_of
from unisono.engine.state.pod_mix import (
    MIX_HISTORY,
    PRIOR,
    SHARED_HISTORY,
    PodMix,
    PodSize,
    SharedPodMix,
    TypicalPod,
    weighted,
)

MILLI = share_of(GPU)


def test_the_mix_is_learned_from_what_was_admitted() -> None:
    mix = PodMix()
    assert mix.typical == PRIOR
    for gpus in (4, 4, 4, 2):
        mix.note(amounts({GPU: gpus, "cpu": 1}))
    mix.note(amounts({"cpu": 1}))
    cpu = amounts({"cpu": 1})
    assert mix.typical == (TypicalPod(4, cpu, 750), TypicalPod(2, cpu, 250))
    assert PodMix(mix.recent()).typical == mix.typical


def test_the_mix_forgets() -> None:
    mix = PodMix([amounts({GPU: 4})] * MIX_HISTORY)
    mix.note(amounts({GPU: 1}))
    assert len(mix.recent()) == MIX_HISTORY
    for _ in range(MIX_HISTORY):
        mix.note(amounts({GPU: 1}))
    assert mix.typical == (TypicalPod(1, (), 1000),)


def test_typical_pods_cover_95_percent_and_large_ones_are_all_there() -> None:
    parts = {milli: amounts({MILLI: milli}) for milli in (500, 300, 200)}
    large = amounts({GPU: 8})
    typical, rare = weighted([*[parts[500]] * 90, *[parts[300]] * 5, *[parts[200]] * 4, large])
    assert typical == ((PodSize(0, 1, 500), 90), (PodSize(0, 1, 300), 5))
    assert rare == ((PodSize(0, 8, 1000), 1),)


def test_the_same_history_gives_the_same_mix_however_long_ago_it_began() -> None:
    dice = random.Random(3)
    mix = SharedPodMix()
    for _ in range(2 * SHARED_HISTORY + 300):
        mix.note(amounts({MILLI: dice.choice((100, 200, 300))}))
        if dice.random() < 0.002:
            again = SharedPodMix()
            for requests in mix.recent():
                again.note(requests)
            assert (again.typical, again.large) == (mix.typical, mix.large)
    assert len(mix.recent()) < 2 * SHARED_HISTORY
