"""What the short texts that describe nodes stand for (`--nodes 2x{gpu=8,cpu=96}`)."""

from __future__ import annotations

import pytest

from unisono.provision.catalog.nodes import BadShape, parse_shape


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("2x{gpus=8}", "gpu=8"),
        ("2x{GPU=8}", "gpu=8"),
        ("2x{gup=8}", "gpu=8"),
        ("2x{accelerators=8}", "gpu=8"),
        ("2x{nvidia.com/gpus=8}", "gpu=8"),
        ("2x{gpu=8,cpus=96}", "cpu=96"),
        ("2x{gpu=8,vCPU=96}", "cpu=96"),
        ("2x{gpu=8,mem=768Gi}", "memory=768Gi"),
        ("2x{gpu=8,Memory=768Gi}", "memory=768Gi"),
        ("2x{gpu=8,disk=1Ti}", "ephemeral-storage=1Ti"),
        ("2x{gpu=8,pod=64}", "pods=64"),
        ("2x{gpu=8,zones=b}", "zone=b"),
        ("2x{gpu=8,nmae=big}", "name=big"),
    ],
)
def test_refuses_misspelt_keys_with_the_right_spelling(text: str, right: str) -> None:
    with pytest.raises(BadShape, match=f": write {right} "):
        parse_shape(text)


def test_keeps_other_keys_as_labels() -> None:
    (group,) = parse_shape("2x{gpu=8,rack=1,pod=west,example.com/room=4,nvidia.com/gpu.count=8}")
    assert group.labels == {
        "rack": "1",
        "pod": "west",
        "example.com/room": "4",
        "nvidia.com/gpu.count": "8",
    }


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "amd.com/gpu"])
def test_reads_resources_by_their_full_names(key: str) -> None:
    (group,) = parse_shape(f"2x{{{key}=8}}")
    assert group.resources == {key: "8", "cpu": "192", "memory": "2048Gi", "pods": "110"}
    assert not group.labels


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1x{gpu=1.5}", "gpu=1.5 is not a whole number"),
        ("1x{gpu=500m}", "gpu=500m is not a whole number"),
        ("1x{gpu=1e30}", "is not a whole number of at most 10000"),
        ("1x{pods=-1}", "pods=-1 is not a whole number"),
        ("1x{cpu=-4}", "cpu=-4 is negative"),
        ("1x{memory=768}", "memory=768 is less than a mebibyte; write a unit"),
        ("1x{gpu=8,gpu=4}", "gpu is there twice"),
        ("1x{gpu=8,nvidia.com/gpu=4}", "nvidia.com/gpu is there twice"),
        ("1x{rack=a,rack=b}", "rack is there twice"),
    ],
)
def test_refuses_amounts_that_no_node_has(text: str, problem: str) -> None:
    with pytest.raises(BadShape, match=problem):
        parse_shape(text)
