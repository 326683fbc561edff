"""Situations: each answer names the cause, a number, and what would change it."""

from __future__ import annotations

import re

import pytest

from tests.cli.situations import FOLDER, SITUATIONS, Situation, name_of, words
from unisono.cli.tables import WIDTH
from unisono.cli.why.answer import answer
from unisono.cli.why.read import Found
from unisono.cli.why.text import text

# What has to be said in each: the cause with its number, and the way out.
SAID = {
    "quota-exhausted": ("may use 4 nvidia.com/gpu more", "default/job/others has ended (12"),
    "preemption": ("2 pods of default/job/sweep are terminating", "when their pods are gone"),
    "gang-does-not-fit": ("3 of 4 pods fit", "default/job/notebook has ended (2"),
    "two-flavors": ("default/job/notebook has ended (4 nvidia.com/gpu of a100", "4 nvidia.com"),
    "larger-than-every-node": ("never, unless there is a node with 16", "a node with 16 nvidia"),
    "topology": ("best rack r1 holds 3 of 4", "there is one more node like these"),
    "turn": ("position 2 of 2: default/job/large", "a priority above 100"),
    "dependency": ("waits for default/prepare to succeed", "when default/prepare has succeeded"),
    "begin": ("must not start before 04:13, in 5 h 59 min", "if it fits then"),
    "too-large": ("can never use more than 16 nvidia.com/gpu", "estimate: never in this cluster"),
    "hold": ("held by an administrator", "kubectl annotate -n default job train"),
    "provisioning": ("2 × g6e.48xlarge on-demand", "when the last machine is ready"),
    "stock-out": ("out of stock (asked 2)", "another zone or machine type"),
    "node-fault": ("lost node n2 with 1 of its 2 pods", "or n2 coming back"),
}


@pytest.mark.parametrize("situation", SITUATIONS, ids=name_of)
def test_the_answer_names_cause_number_and_way_out(situation: Situation) -> None:
    name = name_of(situation)
    said = words(situation)
    why, _, change = said.partition("what would change it:")
    cause, remedy = SAID[name]
    assert cause in " ".join(why.split())
    assert remedy in " ".join(change.split())
    assert re.search(r"\d", why.partition("why:")[2]) or name == "hold"
    assert max(map(len, said.splitlines())) <= WIDTH + 20, "a headline may be a little longer"
    kept = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert said == kept, "if it is better now: python -m tests.cli.situations"


def test_every_file_belongs_to_a_situation() -> None:
    kept = {path.stem for path in FOLDER.glob("*.txt")}
    assert kept == {name_of(one) for one in SITUATIONS} == set(SAID)


def test_an_array_is_not_taken_for_an_unmanaged_job() -> None:
    """Its tasks are jobs of their own; until it is their turn there is only the array."""
    made = {
        "apiVersion": "unisono.dev/v1",
        "kind": "SlurmJob",
        "metadata": {
            "name": "sweep-5",
            "namespace": "default",
            "uid": "u",
            "creationTimestamp": "2026-11-16T22:00:00Z",
        },
        "spec": {"array": {"tasks": "0-15", "limit": 2}},
        "status": {"state": "PENDING", "reason": "JobArrayTaskLimit"},
    }
    said = text(answer(Found(asked=made, job=made)), 1_794_866_460.0)
    assert said.startswith("SlurmJob default/sweep-5 waits.")
    assert "JobArrayTaskLimit: its tasks are jobs of their own" in " ".join(said.split())
    assert "label it" not in said
