"""`unisono sim what-if`: what would become of a job, without sending it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from unisono.cli.decide import instant
from unisono.cli.main import main
from unisono.cli.sim.what_if import _with_job, _without_pending, text
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.runtime.manifest_files import files_of
from unisono.sim.what_if import what_if

QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: gpus, resources: [{name: nvidia.com/gpu, nominalQuota: 1000}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: ml}
spec: {clusterQueue: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
"""
NODE = """\
---
apiVersion: v1
kind: Node
metadata: {name: NAME}
status:
  allocatable: {nvidia.com/gpu: "8", pods: "110"}
  conditions: [{type: Ready, status: "True"}]
"""
RUNNING = """\
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: NAME
  namespace: ml
  annotations: {unisono.dev/time-limit: "60"}
spec:
  queueName: lq
  podSets:
    - name: main
      count: 1
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: c, image: i, resources: {requests: {nvidia.com/gpu: "8"}}}
status:
  admission:
    clusterQueue: all
    podSetAssignments:
      - name: main
        flavors: {nvidia.com/gpu: gpus}
        count: 1
        topologyAssignment:
          levels: [kubernetes.io/hostname]
          slices: [{domainCount: 1, podCounts: {universal: 1}, valuesPerLevel: [{universal: NODE}]}]
  conditions:
    - {type: QuotaReserved, status: "True", reason: x, message: "", lastTransitionTime: NOON}
    - {type: Admitted, status: "True", reason: x, message: "", lastTransitionTime: NOON}
""".replace("NOON", '"2026-01-01T12:00:00Z"')
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: ml
  labels: {kueue.x-k8s.io/queue-name: lq, LABEL}
  annotations: {unisono.dev/time-limit: "30"}
spec:
  parallelism: PODS
  completions: PODS
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]
"""


def ask(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    nodes: int,
    running: int,
    pods: int,
    label: str = "a: b",
    form: str = "json",
) -> tuple[int, Any]:
    cluster = QUEUE + "".join(NODE.replace("NAME", f"n{one}") for one in range(nodes))
    for one in range(running):
        cluster += RUNNING.replace("NAME", f"w{one}").replace("NODE", f"n{one}")
    (tmp_path / "cluster.yaml").write_text(cluster)
    (tmp_path / "job.yaml").write_text(JOB.replace("PODS", str(pods)).replace("LABEL", label))
    argv = [
        "sim",
        "what-if",
        "-f",
        str(tmp_path / "job.yaml"),
        "--on",
        str(tmp_path / "cluster.yaml"),
    ]
    code = main([*argv, "--now", "2026-01-01T12:10:00Z", "-o", form])
    out = capsys.readouterr().out
    return code, json.loads(out) if form == "json" else out


def test_it_starts_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = ask(tmp_path, capsys, nodes=3, running=1, pods=2)
    assert (code, found["verdict"]) == (0, "now")
    assert found["nodes"] == {"n1": 1, "n2": 1}
    assert found["preempts"] == []


def test_it_waits_and_says_until_when(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    assert (code, found["verdict"]) == (0, "later")
    assert found["constraint"]["stage"] == "placement"
    assert (found["samples"], found["started"]) == (20, 20)
    # Both have run for ten minutes of their hour: at the latest at one o'clock.
    assert "2026-01-01T12:10:00Z" < found["startP50"] <= found["startP95"] <= "2026-01-01T13:00:00Z"
    assert ask(tmp_path, capsys, nodes=2, running=2, pods=2) == (code, found)  # the same seed


def test_it_never_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Performance scenario 23, with exit code 2."""
    code, out = ask(tmp_path, capsys, nodes=3, running=0, pods=6, form="text")
    assert code == 2
    assert "never start in this cluster as it is" in out
    assert "never, unless there are 3 more nodes like these: 8 nvidia.com/gpu" in out
    assert "6 pods" in out


def test_a_cordoned_node_is_no_reason_for_never(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the node is back it starts; and no distribution of starts contradicts that."""
    cordoned = NODE.replace("\nstatus:", "\nspec: {unschedulable: true}\nstatus:")
    assert cordoned != NODE
    monkeypatch.setitem(globals(), "NODE", cordoned)
    code, out = ask(tmp_path, capsys, nodes=1, running=0, pods=1, form="text")
    assert code == 0
    assert "would wait" in out
    assert "starts once node n0 is uncordoned" in out
    assert "when    unknown: it waits for more than the end of jobs" in out


def test_names_the_jobs_that_hold_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = ask(tmp_path, capsys, nodes=2, running=1, pods=2, form="text")
    assert "starts once ml/w0 has ended (8 nvidia.com/gpu of gpus on n0; by " in out
    assert "when    half of 20 simulated runs start it by " in out
    assert "(run times drawn within the time limits)" in out


def test_names_a_job_without_a_time_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No simulated run tells when it ends: "not within 60 days" would be a guess."""
    endless = RUNNING.replace('  annotations: {unisono.dev/time-limit: "60"}\n', "")
    monkeypatch.setitem(globals(), "RUNNING", endless)
    _, out = ask(tmp_path, capsys, nodes=2, running=1, pods=2, form="text")
    assert "starts once ml/w0 has ended (8 nvidia.com/gpu of gpus on n0; no time limit)" in out
    assert "when    unknown: ml/w0 has no time limit" in out


def test_it_makes_others_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = "kueue.x-k8s.io/priority-class: urgent"
    code, found = ask(tmp_path, capsys, nodes=2, running=2, pods=1, label=label)
    assert (code, found["verdict"]) == (0, "now")
    assert len(found["preempts"]) == 1


def test_a_wrong_manifest_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("name: lq", "name: nowhere"))
    (tmp_path / "c.yaml").write_text(QUEUE)
    argv = ["sim", "what-if", "-f", str(tmp_path / "job.yaml"), "--on", str(tmp_path / "c.yaml")]
    assert main(argv) == 2
    assert "job.yaml" in capsys.readouterr().err


def asked_for(tmp_path: Path, policy: Policy | None = None) -> tuple[Snapshot, WorkloadKey]:
    world, keys = _with_job(
        files_of(str(tmp_path / "cluster.yaml")),
        files_of(str(tmp_path / "job.yaml")),
        instant("2026-01-01T12:10:00Z"),
    )
    found = world.snapshot
    return msgspec.structs.replace(found, policy=policy or found.policy), keys[0]


def test_without_time_counts_are_used_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, later = ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    world, key = asked_for(tmp_path)
    looks = iter([0.1, 0.5])  # the first run begins, and is cut short
    answer = what_if(world, key, elapsed=lambda: next(looks, 2.5))
    assert answer.constraint is not None
    assert answer.constraint.message == later["constraint"]["message"]
    assert (answer.samples, answer.started) == (5, 5)
    told = text(answer, world.now)
    assert "when    half of 5 simulated runs start it by " in told
    assert "(run times drawn within the time limits, GPU counts only)" in told
    assert "limits  13:00, in 50 min, if all jobs run to their limits" in told


def test_simulates_as_long_as_there_is_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    world, key = asked_for(tmp_path)
    looks = iter(number / 10 for number in range(100))
    answer = what_if(world, key, elapsed=lambda: next(looks))
    assert 0 < answer.samples < 20
    assert answer.started == answer.samples
    assert f"of {answer.samples} simulated runs" in text(answer, world.now)
    assert "counts only" not in text(answer, world.now)


def test_conservative_backfill_simulates_reservations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    world, key = asked_for(tmp_path)
    played = what_if(world, key)
    world, key = asked_for(tmp_path, Policy(backfill=Backfill()))
    monkeypatch.setattr("unisono.sim.what_if._simulated_start", None)  # not used
    found = what_if(world, key)
    assert (found.samples, found.started) == (20, 20)
    # Two end at random within the hour, and it starts after the later one, as when it is played.
    assert found.start_by_limits == played.start_by_limits == instant("2026-01-01T13:00:00Z")
    assert played.start_p50 is not None and found.start_p50 is not None  # noqa: PT018  # for types
    assert abs(found.start_p50 - played.start_p50) < 10 * 60_000
    assert found.start_p95 is not None
    assert instant("2026-01-01T12:10:00Z") < found.start_p50 < found.start_p95
    assert found.start_p95 <= instant("2026-01-01T13:00:00Z")
    assert what_if(world, key) == found  # the same seed


def submitted(**status: object) -> dict[str, Any]:
    """Return the job of `JOB` as a cluster has it: a Workload with an owner."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    about = {
        "name": "job-train-1a2b3",
        "namespace": "ml",
        "creationTimestamp": "2026-01-01T11:00:00Z",
        "ownerReferences": [owner],
    }
    return {"kind": "Workload", "metadata": about, "status": status}


def test_a_job_that_waits_already_is_asked_about_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    given = files_of(str(tmp_path / "job.yaml"))
    there = {"items": [{"kind": "Node", "metadata": {"name": "n"}}, submitted()]}
    since = _without_pending(there, given)
    assert [one["kind"] for one in there["items"]] == ["Node"]
    assert since == {"train": instant("2026-01-01T11:00:00Z")}
    assert "Job ml/train waits in the cluster already" in capsys.readouterr().err
    cluster = files_of(str(tmp_path / "cluster.yaml"))
    world, (key,) = _with_job(cluster, given, instant("2026-01-01T12:10:00Z"), since)
    (found,) = (one for one in world.snapshot.waiting if one.key == key)
    assert found.created_at == instant("2026-01-01T11:00:00Z")


def test_a_job_that_runs_already_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    there = {"items": [submitted(admission={"clusterQueue": "all"})]}
    with pytest.raises(InvalidManifest, match="Job ml/train is admitted already"):
        _without_pending(there, files_of(str(tmp_path / "job.yaml")))


def test_machines_that_could_be_bought_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = "examples/autoscale/pools.yaml"
    (tmp_path / "cluster.yaml").write_text(QUEUE + "---\n" + Path(pool).read_text())
    (tmp_path / "job.yaml").write_text(JOB.replace("PODS", "2").replace("LABEL", "a: b"))
    argv = ["sim", "what-if", "-f", str(tmp_path / "job.yaml")]
    code = main([*argv, "--on", str(tmp_path / "cluster.yaml"), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["verdict"]) == (0, "now")
    assert found["buys"].startswith("2 × ")
    main([*argv, "--on", str(tmp_path / "cluster.yaml")])
    told = capsys.readouterr().out
    assert "ml/job-train would start when its machines are ready, at " in told
    assert "  buys    2 × " in told


def test_time_to_draw_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(tmp_path, capsys, nodes=2, running=2, pods=2)
    argv = ["sim", "what-if", "-f", str(tmp_path / "job.yaml"), "--seconds", "0"]
    assert main([*argv, "--on", str(tmp_path / "cluster.yaml")]) == 2
    assert "--seconds" in capsys.readouterr().err
