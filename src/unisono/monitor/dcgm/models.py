"""What is known of GPU models: power, clocks and memory, as their data sheets say."""

from __future__ import annotations

from typing import NamedTuple


class Model(NamedTuple):
    """One model."""

    tdp_watts: int
    sm_mhz: int  # at most
    memory_mhz: int
    memory_mib: int


_MODELS = {
    "T4": Model(70, 1590, 5001, 15360),
    "V100": Model(300, 1530, 877, 16384),
    "A10G": Model(300, 1710, 6251, 23028),
    "A10": Model(150, 1695, 6251, 23028),
    "A100 SXM4 40GB": Model(400, 1410, 1215, 40960),
    "A100": Model(400, 1410, 1593, 81920),
    "L40S": Model(350, 2520, 9001, 46068),
    "L4": Model(72, 2040, 6251, 23034),
    "H100": Model(700, 1980, 2619, 81559),
    "H200": Model(700, 1980, 3201, 143771),
    "B200": Model(1000, 1965, 3996, 183359),
}
# Longer names first: an A10G is no A10, an L40S no L4.
_BY_LENGTH = sorted(_MODELS, key=lambda one: (-len(one), one))
_UNKNOWN = Model(300, 1500, 5000, 16384)


def model_of(product: str) -> Model:
    """Return what is known of a product.

    >>> model_of("NVIDIA L40S").tdp_watts, model_of("NVIDIA H100 80GB HBM3").sm_mhz
    (350, 1980)
    """
    return next((_MODELS[name] for name in _BY_LENGTH if name in product), _UNKNOWN)
