"""Random jobs on CPUs, for simulations of backfill."""

from __future__ import annotations

import random

from unisono.sim.trace import Trace, make_trace


def random_jobs(seed: int, sizes: tuple[int, ...] = (500, 1000, 2000)) -> Trace:
    """Return sixty jobs within five minutes, of up to eleven pods."""
    chance = random.Random(seed)
    count = 60
    run = [chance.randint(1, 60) for _ in range(count)]
    return make_trace(
        "random",
        submit=sorted(chance.randint(0, 300) for _ in range(count)),
        run=run,
        request=[each * chance.choice((1, 1, 2, 5)) for each in run],
        pods=[chance.choice((1, 1, 2, 3, 6, 11)) for _ in range(count)],
        cpu=[chance.choice(sizes) for _ in range(count)],
    )
