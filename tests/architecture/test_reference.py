"""The reference documents every fact, change, setting, kind, warning and page.

The pages are read as text. A fact's section must also say what the code says of it: its stage, its
reason, and for the examples below the very sentence that a user would see.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from unisono.engine.explain.messages import reason_of, remedy, sentence, stage_of
from unisono.engine.model import explanation as facts
from unisono.engine.model import policy, provisioning
from unisono.engine.model.explanation import Blocker, Explanation, Reason, Stage
from unisono.engine.model.names import (
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.state.changes import Change
from unisono.kinds.known import KNOWN
from unisono.kinds.notes import WARNING_CODES

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"

_GPU = ResourceName("nvidia.com/gpu")
_NOON = Instant(1_767_268_800_000)
_QUEUE = QueueName("team-a")
_WORKLOAD = WorkloadKey("ml/job-train")
_H100 = FlavorName("h100")

# At least one of each fact; a fact with several sentences has one of each.
EXAMPLES: tuple[Blocker, ...] = (
    facts.QuotaExhausted(
        queue=_QUEUE, pod_set="main", flavor=_H100, resource=_GPU, wanted=8, available=6
    ),
    facts.QuotaExhausted(
        queue=_QUEUE,
        pod_set="main",
        flavor=_H100,
        resource=_GPU,
        wanted=8,
        available=6,
        tried_preemption=True,
    ),
    facts.ExceedsMaximum(
        queue=_QUEUE, pod_set="main", flavor=_H100, resource=_GPU, wanted=80, maximum=64
    ),
    facts.ResourceNotCovered(queue=_QUEUE, pod_set="main", resource=ResourceName("example.com/x")),
    facts.FlavorMismatch(pod_set="main", flavor=_H100, why="missing"),
    facts.FlavorMismatch(pod_set="main", flavor=_H100, why="taint", detail="gpu=only:NoSchedule"),
    facts.FlavorMismatch(pod_set="main", flavor=_H100, why="labels", detail="gpu-type=a100"),
    facts.FlavorMismatch(pod_set="main", flavor=_H100, why="not-allowed"),
    facts.FlavorMismatch(pod_set="main", flavor=_H100, why="topology"),
    facts.GangDoesNotFit(pod_set="main", pods=4, pods_placeable=3, cluster_holds=3, nodes=3),
    facts.GangDoesNotFit(
        pod_set="main",
        pods=4,
        pods_placeable=2,
        level="cloud.provider.com/topology-rack",
        best_domain="r1",
        cluster_holds=6,
        nodes=6,
    ),
    facts.GangDoesNotFit(
        pod_set="main",
        pods=1,
        pods_placeable=0,
        nodes=4,
        resource=_GPU,
        wanted_of_node=8,
        best_node_has=2,
        refusals=(("nvidia.com/gpu", 4),),
        tried_preemption=True,
    ),
    facts.CannotBuy(
        code="StockOut",
        pod_set="main",
        pods=8,
        each=((_GPU, 8),),
        pools=(
            facts.PoolRefusal(
                pool="gpu",
                code="StockOut",
                detail="p5.48xlarge on-demand us-east-1a out of stock (asked 8)",
            ),
        ),
        alternatives=(
            provisioning.Alternative(
                machines=(("p5en.48xlarge", 8),),
                zone="us-east-1a",
                capacity_type="on-demand",
                price_micro=506_368_000,
                lacks="out of stock",
            ),
        ),
        retry_at=Instant(_NOON + 180_000),
    ),
    facts.WaitingForVictims(victims=(_WORKLOAD,)),
    facts.WaitingForVictims(victims=(), shrinking=(_WORKLOAD,)),
    facts.WaitingForPods(pods=("ml/notebook",), until=_NOON),
    facts.PreemptionBackoff(until=_NOON, preemptions=2),
    facts.ClaimedThisCycle(queue=_QUEUE),
    facts.ClaimedThisCycle(queue=_QUEUE, overlapping_victims=True),
    facts.BehindInQueue(queue=_QUEUE, head=_WORKLOAD, position=3),
    facts.QueueMissing(local_queue=LocalQueueKey("ml/default")),
    facts.QueueMissing(local_queue=LocalQueueKey("ml/default"), queue=_QUEUE),
    facts.QueueInactive(queue=_QUEUE, why="Terminating"),
    facts.QueueInactive(queue=_QUEUE, why="FlavorNotFound", detail="h100"),
    facts.QueueInactive(queue=_QUEUE, why="AdmissionCheckNotFound", detail="prov"),
    facts.QueueInactive(queue=_QUEUE, why="AdmissionCheckInactive", detail="prov"),
    facts.QueueInactive(queue=_QUEUE, why="TopologyNotFound", detail="racks"),
    facts.QueueInactive(queue=_QUEUE, why="CohortCycle", detail="research"),
    facts.QueueStopped(queue=_QUEUE, local=False, drain=False),
    facts.QueueStopped(queue="ml/default", local=True, drain=True),
    facts.NamespaceNotSelected(queue=_QUEUE, namespace="ml"),
    facts.Misconfigured(
        problem="resources validation failed: pod set main: container train requests 2 cpu; its "
        "limit is 1 cpu"
    ),
    facts.Quarantined(
        stage="audit",
        problem="topology: main: 8 pods are in no domain of rack",
        retry_at=Instant(1_767_268_800_000),
    ),
    facts.CheckFailed(check="prov", state="Retry"),
    facts.Deactivated(),
    facts.Gated(by="example.com/budget"),
    facts.OnHold(),
    facts.OnHold(until=_NOON),
    facts.PodsNotReady(waiting_for=_WORKLOAD),
    facts.WouldDelay(reserved_for=WorkloadKey("ml/big"), start=_NOON, limit_ms=7_200_000),
    facts.Planned(start=_NOON, position=3),
    facts.Expected(start=_NOON, position=3),
    facts.Reserved(
        name="new-cooling",
        start=_NOON,
        end=Instant(_NOON + 14_400_000),
        nodes=2,
        limit_ms=7_200_000,
    ),
    facts.ArrayLimit(array="ml/sweep", limit=2),
    facts.DependencyPending(kind="afterok", on="ml/prepare"),
    facts.DependencyNeverSatisfied(kind="afterok", on="ml/prepare"),
    facts.NotBefore(begin=_NOON),
    facts.DeadlineMissed(deadline=_NOON, limit_ms=7_200_000),
    facts.Held(by="user"),
    facts.Held(by="admin"),
    facts.NotEntitled(code="InvalidQOS", problem="there is no QOS gold"),
    facts.LimitReached(
        code="QOSMaxGRESPerUser",
        owner="qos/normal",
        per="user",
        member="ann",
        tres="gres/gpu",
        used=3000,
        wanted=3000,
        limit=4000,
    ),
    facts.LimitReached(
        code="AssocGrpGRES",
        owner="account/prod",
        per="group",
        tres="gres/gpu",
        used=4000,
        wanted=4000,
        limit=6000,
    ),
    facts.LimitReached(
        code="QOSMaxSubmitJobPerUserLimit",
        owner="qos/normal",
        per="user",
        member="ann",
        unit="jobs",
        used=2,
        wanted=1,
        limit=2,
        denied=True,
    ),
    facts.LimitReached(
        code="AssocGrpWallLimit",
        owner="account/prod",
        per="group",
        unit="time",
        used=5_400_000,
        wanted=0,
        limit=3_600_000,
    ),
    facts.LimitReached(
        code="QOSMaxGRESPerJob",
        owner="qos/caps",
        per="job",
        tres="gres/gpu",
        wanted=8000,
        limit=4000,
        denied=True,
    ),
    facts.LimitReached(
        code="AssocMaxGRESPerNode",
        owner="account/prod",
        per="node",
        tres="gres/gpu",
        wanted=8000,
        limit=4000,
    ),
    facts.LimitReached(
        code="QOSMinGRES",
        owner="qos/big",
        per="least",
        tres="gres/gpu",
        wanted=1000,
        limit=8000,
    ),
)


@cache
def _page(name: str) -> str:
    """Return a page with all white space made single, so that line breaks do not matter."""
    return " ".join((REFERENCE / name).read_text(encoding="utf-8").split())


@cache
def _sections(name: str) -> dict[str, str]:
    """Return the text under each heading of the third level, white space made single."""
    text = (REFERENCE / name).read_text(encoding="utf-8")
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    return {
        heading.strip("`"): " ".join(body.split())
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def _names(union: object) -> list[str]:
    return [member.__name__ for member in get_args(union)]


def _label(fact: Blocker) -> str:
    return type(fact).__name__


def test_every_fact_has_an_example_here() -> None:
    assert {_label(fact) for fact in EXAMPLES} == set(_names(Blocker))


@pytest.mark.parametrize("name", _names(Blocker))
def test_every_fact_has_a_section(name: str) -> None:
    assert name in _sections("explanations.md"), f"explanations.md needs a section ### {name}"


@pytest.mark.parametrize("fact", EXAMPLES, ids=_label)
def test_a_section_says_what_the_code_says(fact: Blocker) -> None:
    section = _sections("explanations.md").get(_label(fact), "")
    why = Explanation(workload=_WORKLOAD, queue=_QUEUE, blockers=(fact,))
    assert f"`{stage_of(why)}`" in section, "the stage is missing"
    assert f"`{reason_of(why)}`" in section, "the reason is missing"
    assert sentence(fact) in section, f"the sentence is missing: {sentence(fact)}"
    change = remedy(fact)
    assert change is None or change in section, f"what would change it is missing: {change}"


@pytest.mark.parametrize("name", _names(Blocker))
def test_every_field_of_a_fact_is_named(name: str) -> None:
    section = _sections("explanations.md").get(name, "")
    for field in getattr(facts, name).__struct_encode_fields__:
        assert f"`{field}`" in section, f"explanations.md: {name} does not name `{field}`"


@pytest.mark.parametrize("word", [*get_args(Stage), *get_args(Reason)])
def test_every_stage_and_reason_is_explained(word: str) -> None:
    assert f"| `{word}` |" in _page("explanations.md")


@pytest.mark.parametrize("name", _names(Change))
def test_every_change_is_documented(name: str) -> None:
    assert f"| `{name}` |" in _page("changes.md"), f"changes.md needs a row for {name}"


def _settings() -> list[tuple[str, str]]:
    sections: tuple[type[msgspec.Struct], ...] = (
        policy.Policy,
        policy.FairSharing,
        policy.AdmissionFairSharing,
        policy.PodsReady,
        policy.Placement,
        policy.Backfill,
        policy.Provisioning,
        policy.AdvanceReservation,
    )
    return [(cls.__name__, field) for cls in sections for field in cls.__struct_fields__]


@pytest.mark.parametrize(("section", "field"), _settings())
def test_every_setting_is_documented(section: str, field: str) -> None:
    name = field if section == "Policy" else f"{section}.{field}"
    assert f"| `{name}` |" in _page("policy.md"), f"policy.md needs a row for {name}"


@pytest.mark.parametrize(("version", "kind"), sorted(KNOWN.kinds))
def test_every_kind_is_documented(version: str, kind: str) -> None:
    rows = [row for row in _rows("manifests.md") if f"`{kind}`" in row]
    assert any(f"`{version}`" in row for row in rows), f"manifests.md: {kind} in {version}"


def _rows(name: str) -> list[str]:
    lines = (REFERENCE / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("|")]


@pytest.mark.parametrize("code", sorted(WARNING_CODES))
def test_every_warning_is_documented(code: str) -> None:
    assert f"| `{code}` |" in _page("manifests.md"), f"manifests.md needs a row for {code}"


def _linked_from_index() -> set[Path]:
    index = ROOT / "docs" / "README.md"
    links = re.findall(r"\]\(([^)#:\s]+)", index.read_text(encoding="utf-8"))
    return {(index.parent / link).resolve() for link in links}


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_page_is_in_the_index(page: Path) -> None:
    assert page.name == "README.md" or page in _linked_from_index(), (
        "docs/README.md must link to it"
    )


@pytest.mark.parametrize(
    "page", ["quota", "placement", "priority", "backfill", "provisioning", "slurm"]
)
def test_citations_of_the_semantics_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / "semantics" / f"{page}.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (\d+)\. ", text, re.MULTILINE))
    for path in sorted((ROOT / "src").rglob("*.py")):
        cited = re.findall(rf"[Ss]pec {page} §(\d+)", path.read_text(encoding="utf-8"))
        assert set(cited) <= sections, f"{path} cites a section that does not exist"


def test_only_pages_that_exist_are_cited() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "semantics").glob("*.md")}
    for path in sorted((ROOT / "src").rglob("*.py")):
        cited = re.findall(r"[Ss]pec ([a-z-]+) §", path.read_text(encoding="utf-8"))
        assert set(cited) <= pages, f"{path} cites a page that does not exist"


@pytest.mark.parametrize(
    ("page", "area", "section", "count"),
    [
        ("quota", "quota", 19, 81),
        ("placement", "gang", 14, 30),
        ("priority", "priority", 9, 9),
        ("provisioning", "provisioning", 6, 32),
        ("slurm", "slurm", 9, 22),
    ],
)
def test_the_semantics_tell_every_scenario(page: str, area: str, section: int, count: int) -> None:
    text = (ROOT / "docs" / "semantics" / f"{page}.md").read_text(encoding="utf-8")
    stories = text.partition(f"\n## {section}. ")[2].partition("\n## ")[0]
    told = re.findall(r"^(\d+)\. ", stories, re.MULTILINE)
    assert [int(number) for number in told] == list(range(1, count + 1))
    files = (ROOT / "tests" / "scenarios" / area).glob("[0-9]*.yaml")
    assert {int(path.name[:3]) for path in files} <= set(range(1, count + 1))
