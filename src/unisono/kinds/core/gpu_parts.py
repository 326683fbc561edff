"""Parts of a GPU, in the spellings that people use today.

    unisono.dev/gpu-fraction: "0.5"             ours, an annotation of the pod
    gpu-fraction: "0.5"                         KAI, likewise
    alibabacloud.com/gpu-milli: "500"           Alibaba, an annotation or a resource; with
    alibabacloud.com/gpu-count: "1"             whole GPUs if it is 1000, or absent
    nvidia.com/gpu: 1, nvidia.com/gpucores: 50  HAMi, resources: percent of each of so many GPUs
    nvidia.com/gpu-milli: 500                   the resource that all of them become

Everything here is in nano-units, like the resource lists that it changes. A part can be had of one
GPU only; parts of several are refused with that reason. Spec placement §8.15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from unisono.engine.model.resources import MAX_GPUS, WHOLE_GPU, share_of
from unisono.engine.model.selection import AffinityTerm, Requirement
from unisono.kinds.digits import whole_number
from unisono.kinds.quantity import NANO, Nano

GPU = "nvidia.com/gpu"
PART = str(share_of(GPU))
OWN_FRACTION = "unisono.dev/gpu-fraction"
OWN_DEVICE = "unisono.dev/gpu-device"  # which of its node's GPUs a bound pod shares
KAI_FRACTION, KAI_DEVICES, KAI_MEMORY = "gpu-fraction", "gpu-fraction-num-devices", "gpu-memory"
ALIBABA_MILLI, ALIBABA_COUNT = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-count"
ALIBABA_INDEX = "alibabacloud.com/gpu-index"
ALIBABA_MODEL = "alibabacloud.com/gpu-card-model"  # of pods, models joined by |; of nodes, a label
HAMI_CORES = "nvidia.com/gpucores"  # percent of a GPU
HAMI_MEMORY, HAMI_PERCENT = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
# The annotations that change what a pod asks for.
PART_WORDS = (
    OWN_FRACTION,
    KAI_FRACTION,
    KAI_DEVICES,
    KAI_MEMORY,
    ALIBABA_MILLI,
    ALIBABA_COUNT,
)
# The resources that do; an operator's transformation of one of them wins over what it says here.
PART_RESOURCES = (ALIBABA_MILLI, ALIBABA_COUNT, HAMI_CORES, HAMI_MEMORY, HAMI_PERCENT)
_PERCENT = WHOLE_GPU // 100
_FRACTION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,18})?|\.[0-9]{1,18}")


def with_parts(requests: Nano, annotations: Mapping[str, str]) -> tuple[Nano, str]:
    """Return requests with parts of GPUs as one resource, and what is wrong with them, if so."""
    try:
        found = {**requests}
        milli, gpus = _annotated(annotations)
        if milli is None:
            milli, gpus = _requested(found)
        if milli is None:
            return found, _too_large(found)
        return _asking(found, milli, gpus)
    except ValueError as error:
        return requests, str(error)


def whole_gpus(requests: Nano) -> Nano:
    """Return requests with whole GPUs where HAMi's resources say which part of each is wanted."""
    parts = (HAMI_CORES, HAMI_MEMORY, HAMI_PERCENT)
    if not any(name in requests for name in parts):
        return requests
    whole = {name: amount for name, amount in requests.items() if name not in parts}
    return {**whole, GPU: requests.get(GPU, NANO)}


def _annotated(annotations: Mapping[str, str]) -> tuple[int | None, int]:
    """Return which part of how many GPUs annotations ask for; None if they say nothing."""
    for key in (OWN_FRACTION, KAI_FRACTION):
        if key in annotations:
            gpus = _number(KAI_DEVICES, annotations) if KAI_DEVICES in annotations else 1
            return _fraction(key, annotations[key]), gpus
    if KAI_MEMORY in annotations:
        raise ValueError(f"{KAI_MEMORY} says no part of a GPU; give it as {KAI_FRACTION}")
    if ALIBABA_MILLI in annotations or ALIBABA_COUNT in annotations:
        gpus = _number(ALIBABA_COUNT, annotations) if ALIBABA_COUNT in annotations else 1
        milli = _number(ALIBABA_MILLI, annotations) if ALIBABA_MILLI in annotations else WHOLE_GPU
        return (milli, gpus) if milli and gpus else (None, 0)
    return None, 0


def _requested(requests: Nano) -> tuple[int | None, int]:
    """Take parts out of a resource list; None if there are none."""
    if ALIBABA_COUNT in requests or ALIBABA_MILLI in requests:
        gpus = requests.pop(ALIBABA_COUNT, NANO) // NANO
        milli = requests.pop(ALIBABA_MILLI, WHOLE_GPU * NANO) // NANO
        return (milli, gpus) if milli and gpus else (None, 0)
    percent = max(requests.pop(HAMI_CORES, 0), requests.pop(HAMI_PERCENT, 0)) // NANO
    if not percent:
        if HAMI_MEMORY in requests:
            raise ValueError(f"{HAMI_MEMORY} says no part of a GPU; give {HAMI_CORES} as well")
        return None, 0
    requests.pop(HAMI_MEMORY, None)  # it goes with the part
    return percent * _PERCENT, requests.pop(GPU, NANO) // NANO


def _asking(requests: Nano, milli: int, gpus: int) -> tuple[Nano, str]:
    """Write down a part of one GPU, or whole ones."""
    if not 0 < milli <= WHOLE_GPU:
        raise ValueError(f"asks for {milli} thousandths of a GPU; it can be 1 to {WHOLE_GPU}")
    if requests.get(GPU, 0) or requests.get(PART, 0):
        raise ValueError(f"asks for {GPU} and, in other words, for a part of one; give one of them")
    if milli == WHOLE_GPU:
        return {**requests, GPU: gpus * NANO}, ""
    if gpus != 1:
        raise ValueError(f"asks for a part of each of {gpus} GPUs; a part can be had of one only")
    return {**requests, PART: milli * NANO}, ""


def _too_large(requests: Nano) -> str:
    milli = requests.get(PART, 0) // NANO
    if milli > WHOLE_GPU:
        return f"asks for {milli} {PART}; a part is at most {WHOLE_GPU}, whole GPUs are {GPU}"
    return ""


def _fraction(key: str, text: str) -> int:
    if _FRACTION.fullmatch(text) is None:  # 1e999999999 is a number, too, and takes all day
        raise ValueError(f'{key} is "{text[:40]}", which is no number like 0.5')
    milli = Fraction(text) * WHOLE_GPU
    return -(-milli.numerator // milli.denominator)  # rounded up: no pod gets less


def _number(key: str, annotations: Mapping[str, str]) -> int:
    number = whole_number(annotations[key])
    if number is None:
        raise ValueError(f'{key} is "{annotations[key][:40]}", which is no number')
    return number


def with_models(
    terms: tuple[AffinityTerm, ...], annotations: Mapping[str, str]
) -> tuple[AffinityTerm, ...]:
    """Return node affinity with the GPU models that an annotation allows."""
    models = tuple(filter(None, annotations.get(ALIBABA_MODEL, "").split("|")))
    if not models:
        return terms
    here = Requirement(ALIBABA_MODEL, "In", models)
    return tuple((*term, here) for term in terms or ((),))


def device_of(annotations: Mapping[str, str]) -> int | None:
    """Return which GPU of its node a pod shares, if it says so."""
    for key in (OWN_DEVICE, ALIBABA_INDEX):
        number = whole_number(annotations.get(key, ""))
        if number is not None and number < MAX_GPUS:
            return number
    return None
