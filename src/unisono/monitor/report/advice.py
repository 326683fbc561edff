"""What would be better for a job, and what it would save; most of it after half an hour.

A cause is said for all that was wasted: devices without work, too many or too large ones, an input
that is too slow, a slow node, work without a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from unisono.monitor.ledger.accounts import Used
from unisono.monitor.ledger.rows import WorkloadRow

_LEAST_SECONDS = 1800
_LITTLE_BUSY = 0.2
_VERY_BUSY = 0.8
_NO_TENSOR = 0.05
_MUCH_LOST = 0.1
_SHORT_OF_LIMIT = 0.3
_LOADER_BOUND = 0.6
_LEAST_MICRO_USD = 5_000  # what is less than a cent is not wasted
_MOST_NODES = 3
STRAGGLER = "Straggler"
_SPARE_MEMORY = 1.2  # what a job should have beyond its peak


class Gpu(NamedTuple):
    """A sort of GPU that can be had."""

    model: str
    memory_mib: int
    usd_hour: float


class Advisor:
    """Knows which GPUs there are."""

    def __init__(self, gpus: Iterable[Gpu]) -> None:
        """Put the cheapest first."""
        self._gpus = sorted(gpus, key=lambda one: (one.usd_hour, one.model))

    def advise(
        self,
        used: Used,
        attempt: WorkloadRow | None,
        usd_hour: float,
        slow_nodes: Sequence[str] = (),
    ) -> Iterator[str]:
        """Yield what a job's owner might do; `usd_hour` is what one of its GPUs costs now."""
        if slow_nodes:
            yield (
                f"waited for its slowest rank on {', '.join(slow_nodes[:_MOST_NODES])}: annotate it"
                f" with unisono.dev/straggler: replace ({_saves(used.spent.micro_usd.idle)})"
            )
        said = list(advice_for(used, attempt, self._gpus, usd_hour))
        yield from said
        if not said and not slow_nodes:
            yield from _by_cause(used)


def advice_for(
    used: Used, attempt: WorkloadRow | None, gpus: Sequence[Gpu], usd_hour: float
) -> Iterator[str]:
    """Yield what its owner might do, the weightiest first; the cheapest of `gpus` come first."""
    spent = used.spent
    running = spent.allocated - spent.seconds.starting
    if not used.devices or running < _LEAST_SECONDS * used.devices:
        return
    busy_devices = used.devices - used.idle_devices
    if used.idle_devices == used.devices and spent.measured:
        yield f"its GPUs did nothing: end it (saves ${used.devices * usd_hour:.2f} an hour)"
        return
    if 0 < used.idle_devices < used.devices and spent.measured:
        saved = used.idle_devices * usd_hour
        yield (
            f"only {busy_devices} of {used.devices} GPUs were busy: request {busy_devices}"
            f" (saves ${saved:.2f} an hour)"
        )
    busy = spent.seconds.busy / spent.measured if spent.measured else None
    if busy is not None and busy < _LITTLE_BUSY and not used.idle_devices:
        yield (
            f"busy {busy:.0%} of the time: look at the input pipeline, or use a smaller GPU"
            f" ({_saves(spent.micro_usd.idle)})"
        )
    if busy is not None and busy > _VERY_BUSY and used.covered:
        tensor = used.tensor / used.covered
        if tensor < _NO_TENSOR:
            yield f"busy {busy:.0%} but tensor cores only {tensor:.0%}: try mixed precision"
    cheaper = _cheaper(used, gpus, usd_hour)
    if cheaper is not None:
        yield (
            f"at most {used.peak_mib / 1024:.0f} GiB of GPU memory were used: {cheaper.model}"
            f" would do (saves ${(usd_hour - cheaper.usd_hour) * used.devices:.2f} an hour)"
        )
    if spent.seconds.lost > _MUCH_LOST * spent.allocated:
        lost = spent.seconds.lost / spent.allocated
        yield (
            f"{lost:.0%} of its time was lost: write checkpoints more often"
            f" ({_saves(spent.micro_usd.lost)})"
        )
    if attempt is not None and attempt.limit and attempt.ended and attempt.ready:
        ran = attempt.ended - attempt.ready
        if ran < _SHORT_OF_LIMIT * attempt.limit:
            yield (
                f"it ran {ran / attempt.limit:.0%} of its time limit: a shorter one starts sooner,"
                " in gaps"
            )


def _by_cause(used: Used) -> Iterator[str]:
    """Yield what its waste comes from, where no rule above is sure of more."""
    spent = used.spent
    idle, lost = spent.micro_usd.idle, spent.micro_usd.lost
    if max(idle, lost) < _LEAST_MICRO_USD:
        return
    if lost >= idle:
        yield f"work since its last checkpoint was lost: write them more often ({_saves(lost)})"
        return
    busy = spent.seconds.busy / spent.measured if spent.measured else 0.0
    if used.idle_devices == used.devices:
        yield f"its GPUs did nothing: start with fewer, or fail early ({_saves(idle)})"
    elif busy < _LOADER_BOUND:
        yield (
            f"busy {busy:.0%} of the time: it waits for data; more loader workers, prefetching or a"
            f" faster volume ({_saves(idle)})"
        )
    else:
        yield (
            f"idle {1 - busy:.0%} of the time, between steps or at its end: overlap evaluation and"
            f" checkpoints with training ({_saves(idle)})"
        )


def _saves(micro_usd: int) -> str:
    return f"up to ${micro_usd / 1e6:,.2f}"


def _cheaper(used: Used, gpus: Iterable[Gpu], usd_hour: float) -> Gpu | None:
    """Return the cheapest GPU that has the memory a job needs, if it is cheaper than its own."""
    if not used.peak_mib:
        return None
    needed = used.peak_mib * _SPARE_MEMORY
    for one in gpus:
        if one.usd_hour >= usd_hour:
            return None
        if one.memory_mib >= needed:
            return one
    return None
