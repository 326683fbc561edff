"""`unisono sim compare`: policies of files, and queues that they bring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unisono.cli.main import main
from unisono.sim.archive import load_outcome

TRACE = ["--trace", "gpu:jobs=60,gpus=16,load=1.2,teams=2", "--nodes", "2x{gpu=8}"]

BACKFILL = """\
apiVersion: unisono.dev/v1
kind: Policy
backfill: {dates: 1}
"""

QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {matchLabels: {team: none}}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu, cpu, memory]
      flavors:
        - name: gpus
          resources:
            - {name: nvidia.com/gpu, nominalQuota: 16}
            - {name: cpu, nominalQuota: 1000}
            - {name: memory, nominalQuota: 100Ti}
---
"""


FLAVOR = QUEUES.index("---")  # so far it is the same for all


def test_files_and_names_over_several_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(BACKFILL)
    (tmp_path / "queued.yaml").write_text(QUEUES.replace("NAME", "all") + BACKFILL)
    policies = ["easy", str(tmp_path / "mine.yaml"), str(tmp_path / "queued.yaml")]
    page = tmp_path / "out.html"
    argv = ["sim", "compare", *policies, *TRACE, "--seeds", "2", "--html", str(page)]
    assert main([*argv, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 2
    easy, mine, queued = found["policies"]
    assert (mine["policy"], queued["policy"]) == ("mine", "queued")
    # The same rules by name, by file, and with a queue that says what is assumed otherwise.
    for key in ("meanWaitSeconds", "makespanSeconds", "meanFragmentation", "completed"):
        assert easy[key] == mine[key] == queued[key]
    assert "mine" in page.read_text(encoding="utf-8")


def test_jobs_go_to_the_queue_that_is_called_like_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(QUEUES.replace("NAME", "team-1") + QUEUES.replace("NAME", "team-2")[FLAVOR:])
    assert main(["sim", "compare", str(path), *TRACE, "--seeds", "1", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["policies"][0]["completed"] == 60
    path.write_text(QUEUES.replace("NAME", "team-1") + QUEUES.replace("NAME", "others")[FLAVOR:])
    assert main(["sim", "compare", str(path), *TRACE, "--seeds", "1"]) == 2
    assert 'has no queue named "team-2", as the trace needs; it has' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n", "nodes come from --nodes"),
        (BACKFILL.replace("dates: 1", "dates: some"), "backfill.dates"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    assert main(["sim", "compare", "easy", str(path), *TRACE]) == 2
    assert message in capsys.readouterr().err


def test_users_with_less_usage_go_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flood of one user, and then one job of another: by turns it does not wait for the flood."""
    jobs = [{"number": n, "submit": 0.0, "user": "flood"} for n in range(1, 21)]
    jobs.append({"number": 21, "submit": 1.0, "user": "other"})
    lines = [{"schema": "unisono.trace/v1", "name": "t", "processors": 2}]
    lines += [{"run": 60.0, "request": 60.0, "pods": 1, "cpu": 1000, **job} for job in jobs]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    policies = "easy,multifactor,multifactor+easy,multifactor+conservative"
    argv = ["sim", "--trace", str(path), "--nodes", "2x{cpu=1}", "--policy", policies]
    assert main([*argv, "--save", str(tmp_path), "-o", "json"]) == 0

    starts = {
        name: load_outcome(tmp_path / f"{name}.npz").start[20] for name in policies.split(",")
    }
    assert starts.pop("easy") == 600
    assert set(starts.values()) == {60}
