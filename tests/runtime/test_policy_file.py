"""`unisono up --policy`: read once, kept with the instance, known to the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.engine.model.errors import InvalidManifest
from unisono.runtime.instance import Instance
from unisono.runtime.policy_file import chosen_policy, path_of

CONFIGURATION = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
manageJobsWithoutQueueName: true
fairSharing: {}
"""
POLICY = """\
apiVersion: unisono.dev/v1
kind: Policy
metadata: {name: mine}
placement: {scoring: fgd}
"""


def test_a_policy_is_kept_until_it_is_taken_back(tmp_path: Path) -> None:
    instance, file = Instance(tmp_path), tmp_path / "chosen.yaml"
    assert chosen_policy(instance, None) is None
    file.write_text(CONFIGURATION)
    first = chosen_policy(instance, str(file))
    assert first is not None
    assert first.settings.manages_unqueued
    assert first.settings.policy.fair_sharing is not None
    file.unlink()
    assert chosen_policy(instance, None) == first
    assert chosen_policy(instance, "none") is None
    assert chosen_policy(instance, None) is None


def test_what_the_api_has_to_know(tmp_path: Path) -> None:
    instance, file = Instance(tmp_path), tmp_path / "chosen.yaml"
    file.write_text(f"{CONFIGURATION}---\n{POLICY}")
    found = chosen_policy(instance, str(file))
    assert found is not None
    assert found.settings.policy.placement.scoring == "fgd"
    assert found.stored == {
        "apiVersion": "unisono.dev/v1",
        "kind": "Policy",
        "metadata": {"name": "unisono"},
        "manageJobsWithoutQueueName": True,
        "placement": {"scoring": "fgd"},
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "apiVersion: v1\nkind: Pod\n",
            "only a Policy, a SchedulingPolicy or a Kueue Configuration",
        ),
        (POLICY.replace("fgd", "worst"), "placement.scoring"),
        ("a: [", "document 1"),
    ],
)
def test_a_bad_one_is_refused_and_not_kept(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "chosen.yaml"
    file.write_text(text)
    with pytest.raises(InvalidManifest, match=says):
        chosen_policy(Instance(tmp_path), str(file))
    assert not (tmp_path / "policy.yaml").exists()
    with pytest.raises(InvalidManifest, match="there is no file"):
        path_of(str(tmp_path / "nowhere.yaml"))
