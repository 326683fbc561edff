"""The order worked out from Workloads is the engine's."""

from __future__ import annotations

import random

import yaml

from tests.support.manifests import sound
from unisono.kinds import views
from unisono.kinds.kueue.queue_order import order_key, pending_order, positions
from unisono.kube.form import Json

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec: {namespaceSelector: {}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: team}
spec: {clusterQueue: q}
"""


def workload(name: str, random_source: random.Random) -> Json:
    """Return a pending workload; few values, so that many have the same priority and time."""
    reason = random_source.choice(("", "", "Preempted", "AdmissionCheck", "PodsReadyTimeout"))
    number = random_source.choice(("", "", "7", "12", "+3"))
    container = {"name": "c", "resources": {"requests": {"gpu": "2"}}}
    evicted = {
        "type": "Evicted",
        "status": random_source.choice(("True", "True", "False")),
        "reason": reason,
        "message": "",
        "lastTransitionTime": f"1970-01-01T00:00:0{random_source.randrange(3, 6)}Z",
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"u{random_source.randrange(10**6):06}",
            "creationTimestamp": f"1970-01-01T00:00:0{random_source.randrange(1, 6)}Z",
            **({"annotations": {"unisono.dev/number": number}} if number else {}),
        },
        "spec": {
            "queueName": "lq",
            "priority": random_source.randrange(2),
            "podSets": [{"count": 1, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {"conditions": [evicted] if reason else []},
    }


def test_the_order_is_that_of_the_engine() -> None:
    random_source = random.Random(23)
    for _ in range(20):
        made = [workload(f"w{at}", random_source) for at in range(12)]
        waiting = sound(QUEUES, *map(yaml.safe_dump, made)).snapshot.waiting
        engine = sorted(waiting, key=lambda one: one.position_key)
        assert [f"team/{one['metadata']['name']}" for one in pending_order(made)] == [
            one.key for one in engine
        ]


def test_what_is_in_no_pending_queue_has_no_position() -> None:
    random_source = random.Random(1)
    made = {
        name: workload(name, random_source) for name in ("held", "inactive", "runs", "over", "w")
    }
    explained = {"type": "unisono.dev/Explanation", "status": "True", "reason": "Hold"}
    made["held"]["status"] = {"conditions": [{**explained, "message": ""}]}
    made["inactive"]["spec"]["active"] = False
    made["runs"]["status"] = {"admission": {"clusterQueue": "q"}}
    made["over"]["status"] = {"conditions": [{"type": "Finished", "status": "True"}]}
    assert [name for name, one in made.items() if order_key(views.Workload(one)) is not None] == [
        "w"
    ]
    assert positions(made.values(), lambda _: "q") == {made["w"]["metadata"]["uid"]: 1}


def test_a_preemptor_that_waits_for_victims_is_first() -> None:
    random_source = random.Random(2)
    first, last = workload("a", random_source), workload("b", random_source)
    first["spec"]["priority"] = 9
    facts = '{"facts": [{"fact": "WaitingForVictims", "victims": ["x/y"]}], "stage": "preemption"}'
    last["status"] = {
        "conditions": [
            {
                "type": "unisono.dev/Explanation",
                "status": "True",
                "reason": "Preemption",
                "message": facts,
            }
        ]
    }
    assert pending_order([first, last]) == [last, first]


def test_a_published_order_comes_first() -> None:
    random_source = random.Random(3)
    made = [workload(name, random_source) for name in ("a", "b", "c")]
    for at, one in enumerate(made):
        one["spec"]["priority"] = -at
    condition = {
        "type": "unisono.dev/PendingOrder",
        "status": "True",
        "message": '["team/gone","team/c"]',
    }
    queue = {"status": {"conditions": [condition]}}
    assert [one["metadata"]["name"] for one in pending_order(made, queue)] == ["c", "a", "b"]
    broken = {"status": {"conditions": [{**condition, "message": "?"}]}}
    assert [one["metadata"]["name"] for one in pending_order(made, broken)] == ["a", "b", "c"]
