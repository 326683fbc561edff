"""Parts of a GPU as people write them today."""

from __future__ import annotations

import pytest

from unisono.engine.model.selection import Requirement
from unisono.kinds.core.gpu_parts import GPU, PART, device_of, with_models, with_parts
from unisono.kinds.quantity import NANO

MODEL = "alibabacloud.com/gpu-card-model"


def read(requests: dict[str, int], annotations: dict[str, str]) -> dict[str, int] | str:
    """Return what is asked for in whole units, or what is wrong."""
    found, fault = with_parts({name: n * NANO for name, n in requests.items()}, annotations)
    return fault or {name: size // NANO for name, size in found.items()}


@pytest.mark.parametrize(
    ("requests", "annotations", "expected"),
    [
        ({"cpu": 2}, {}, {"cpu": 2}),
        ({GPU: 2}, {}, {GPU: 2}),
        ({PART: 500}, {}, {PART: 500}),
        ({"cpu": 2}, {"unisono.dev/gpu-fraction": "0.5"}, {"cpu": 2, PART: 500}),
        ({}, {"gpu-fraction": "0.3333"}, {PART: 334}),
        ({}, {"gpu-fraction": "1"}, {GPU: 1}),
        ({}, {"gpu-fraction": "1", "gpu-fraction-num-devices": "2"}, {GPU: 2}),
        (
            {},
            {"alibabacloud.com/gpu-milli": "460", "alibabacloud.com/gpu-count": "1"},
            {PART: 460},
        ),
        ({}, {"alibabacloud.com/gpu-milli": "1000", "alibabacloud.com/gpu-count": "8"}, {GPU: 8}),
        ({}, {"alibabacloud.com/gpu-count": "2"}, {GPU: 2}),
        ({"alibabacloud.com/gpu-milli": 250, "alibabacloud.com/gpu-count": 1}, {}, {PART: 250}),
        ({GPU: 1, "nvidia.com/gpucores": 30}, {}, {PART: 300}),
        ({GPU: 1, "nvidia.com/gpucores": 30, "nvidia.com/gpumem": 3000}, {}, {PART: 300}),
        ({GPU: 1, "nvidia.com/gpumem-percentage": 50}, {}, {PART: 500}),
        ({GPU: 2, "nvidia.com/gpucores": 100}, {}, {GPU: 2}),
    ],
)
def test_all_spellings_become_one_resource(
    requests: dict[str, int], annotations: dict[str, str], expected: dict[str, int]
) -> None:
    assert read(requests, annotations) == expected


@pytest.mark.parametrize(
    ("requests", "annotations", "fault"),
    [
        ({}, {"gpu-fraction": "half"}, 'gpu-fraction is "half", which is no number'),
        ({}, {"gpu-fraction": "1.5"}, "asks for 1500 thousandths of a GPU"),
        ({}, {"unisono.dev/gpu-fraction": "0"}, "asks for 0 thousandths of a GPU"),
        ({}, {"gpu-memory": "2000"}, "gpu-memory says no part of a GPU"),
        ({}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, "a part of each of 2 GPUs"),
        ({GPU: 1}, {"gpu-fraction": "0.5"}, "give one of them"),
        ({GPU: 2, "nvidia.com/gpucores": 50}, {}, "a part of each of 2 GPUs"),
        ({GPU: 1, "nvidia.com/gpumem": 3000}, {}, "give nvidia.com/gpucores as well"),
        ({PART: 1001}, {}, "a part is at most 1000"),
        ({}, {"alibabacloud.com/gpu-milli": "x"}, "which is no number"),
    ],
)
def test_what_cannot_be_had_is_said(
    requests: dict[str, int], annotations: dict[str, str], fault: str
) -> None:
    assert fault in str(read(requests, annotations))


def test_models_are_node_labels() -> None:
    here = Requirement(MODEL, "In", ("T4", "A10"))
    other = Requirement("zone", "Exists", ())
    assert with_models((), {MODEL: "T4|A10"}) == ((here,),)
    assert with_models(((other,),), {MODEL: "T4|A10"}) == ((other, here),)
    assert with_models(((other,),), {}) == ((other,),)


def test_a_bound_pod_may_say_which_gpu_it_shares() -> None:
    assert device_of({"unisono.dev/gpu-device": "3"}) == 3
    assert device_of({"alibabacloud.com/gpu-index": "1"}) == 1
    assert device_of({"alibabacloud.com/gpu-index": "1-2"}) is None
    assert device_of({}) is None
