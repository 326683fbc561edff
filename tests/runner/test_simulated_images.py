"""What simulated containers do because of their images."""

from __future__ import annotations

import math
from typing import Any

import pytest

from unisono.runner.simulated.images import failure_of, is_server
from unisono.runner.simulated.script import script_of, start_seconds


@pytest.mark.parametrize(
    ("image", "script", "code"),
    [
        ("busybox", "sleep 10s && xyz", 127),
        ("docker.io/library/alpine:3.20", "xyz", 127),
        ("busybox", "xyz; sleep 1", 0),
        ("nginx:1.29.3-alpine", "sleep 10s && xyz", 127),
        ("nginx:1.29.3-alpine", "nginx -t", 0),
        ("nginx:1.29.3", "apt-get update", 0),
        ("busybox", "xyz || true", 0),
        ("busybox", "true || xyz", 0),
        ("busybox", "sh fake.sh", 2),
        ("busybox", "A=1 sh fake.sh", 2),
        ("busybox", "for i in 1 2; do echo $i; done", 0),
        ("busybox", "/data/train", 0),
        ("busybox", "echo a > /tmp/a\ncat /tmp/a", 0),
        ("pytorch/pytorch", "torchrun train.py", 0),
    ],
)
def test_bare_images_have_only_their_own_commands(image: str, script: str, code: int) -> None:
    assert failure_of({"image": image, "command": ["/bin/sh", "-c", script]}) == code


def test_a_mounted_volume_may_hold_anything() -> None:
    container = {"image": "busybox", "command": ["sh", "-c", "sh run.sh"]}
    assert failure_of(container) == 2
    assert failure_of({**container, "volumeMounts": [{"name": "code", "mountPath": "/c"}]}) == 0


def test_servers_are_known_by_their_images() -> None:
    assert is_server("nginx:1.29.3-alpine")
    assert not is_server("my/nginx-exporter-job")


def test_a_node_may_say_how_long_pods_take_to_start() -> None:
    pod: dict[str, Any] = {"metadata": {"annotations": {}}}
    node = {"unisono.dev/start-seconds": "3", "unisono.dev/run-seconds": "1"}
    assert start_seconds(pod, node) == 3
    pod["metadata"]["annotations"]["unisono.dev/start-seconds"] = "1"
    assert start_seconds(pod, node) == 1
    container = {"name": "a", "image": "nginx"}
    spec = {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    script = script_of(spec, container, 0, node={**node, "unisono.dev/stop-seconds": "2"})
    assert (script.run_s, script.stop_s) == (math.inf, 2), "how long it runs is the pod's to say"
