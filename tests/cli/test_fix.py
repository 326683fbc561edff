"""Manifests become what their own projects accept, and stay as they were written otherwise."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.cli.fix import in_place
from unisono.cli.main import main
from unisono.engine.model.names import Instant
from unisono.kinds.snapshot.build import read_world
from unisono.kinds.spelling import spelled

NOW = Instant(0)
OLD = """\
# what we have
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: a  # keep this
  namespace: kueue-system
spec:
  nodeSelector:  # as the guide says
    gpu: nvidia
---
# stays as it is
apiVersion: v1
kind:   Namespace
metadata: {name: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: cq
spec:
  cohort: all   # shared
  resourceGroups:
  - flavors:
    - a
    - b
    resources:
    - name: nvidia.com/gpu
      nominalQuota: 100
  # victims
  preemption: {withinClusterQueue: LowerPriority}
"""
NEW = """\
# what we have
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata:
  name: a  # keep this
spec:
  nodeLabels:  # as the guide says
    gpu: nvidia
---
# stays as it is
apiVersion: v1
kind:   Namespace
metadata: {name: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: cq
spec:
  namespaceSelector: {}
  cohortName: all   # shared
  resourceGroups:
  - coveredResources:
    - nvidia.com/gpu
    flavors:
    - {name: a, resources: [{name: nvidia.com/gpu, nominalQuota: 100}]}
    - {name: b, resources: [{name: nvidia.com/gpu, nominalQuota: 0}]}
  # victims
  preemption: {withinClusterQueue: LowerPriority}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Return a file in the old spelling."""
    path = tmp_path / "queues.yaml"
    path.write_text(OLD)
    return path


def test_the_difference_is_shown_and_nothing_is_changed(
    manifest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fix", "-f", str(manifest)]) == 1
    out, err = capsys.readouterr()
    assert "-  nodeSelector:  # as the guide says\n+  nodeLabels:  # as the guide says\n" in out
    assert "document 1: spec.nodeSelector: is called nodeLabels" in err
    assert "all of it is with a now, divide it as you like" in err
    assert manifest.read_text() == OLD


def test_files_are_changed_once(manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "-f", str(manifest), "--write"]) == 0
    assert manifest.read_text() == NEW
    capsys.readouterr()
    assert main(["fix", "-f", str(manifest)]) == 0
    assert capsys.readouterr() == ("", "")


def test_what_comes_out_deserves_no_warning() -> None:
    before = read_world([("q.yaml", OLD.encode())], now=NOW)
    after = read_world([("q.yaml", NEW.encode())], now=NOW)
    assert {one.code for one in before.warnings} >= {"NodeSelectorAlias", "PooledGroup"}
    assert [one.code for one in after.warnings] == []


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (
            {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {}}}},
            "spec.template.spec.restartPolicy: added, Never",
        ),
        (
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "spec": {"tasks": [{"template": {"spec": {}}}]},
            },
            "spec.tasks[0].template.spec.restartPolicy: added, OnFailure",
        ),
    ],
)
def test_jobs_get_the_restart_policy_that_is_taken_for_granted(obj: Any, said: str) -> None:
    assert spelled(obj).changes == (said,)
    assert spelled(spelled(obj).obj).changes == ()
    assert spelled({"apiVersion": "example.com/v1", "kind": "Other"}).changes == ()


_KEYS = st.sampled_from(("a", "b", "c", "d"))
_VALUES = st.recursive(
    st.sampled_from((1, "x", "two words", True, "")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(_OBJECTS, _OBJECTS, st.sampled_from((None, False, True)))
def test_whatever_has_to_change_comes_out_as_it_should(old: Any, new: Any, style: Any) -> None:
    text = yaml.safe_dump(old, default_flow_style=style, sort_keys=False)
    assert yaml.safe_load(in_place(f"---\n{text}", old, new)) == new
    assert in_place(text, old, old) == text


def test_a_full_disk_costs_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.yaml"
    path.write_text(OLD, encoding="utf-8")

    def write_half(path: Path, text: str, encoding: str) -> int:
        path.write_bytes(text[: len(text) // 2].encode(encoding))
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", write_half)
    assert main(["fix", "-f", str(path), "--write"]) != 0
    assert path.read_text(encoding="utf-8") == OLD
    assert [one.name for one in tmp_path.iterdir()] == ["old.yaml"]
    assert "No space left on device" in capsys.readouterr().err
