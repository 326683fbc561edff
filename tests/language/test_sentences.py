"""Sentences that are made already are recognised: of the engine, of `why`, and none besides."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.judge.situations import situation
from unisono.control.scheduler.explainer import facts_of, root_cause_of
from unisono.engine.cluster import restore
from unisono.engine.diagnosis.diagnose import diagnose
from unisono.engine.explain.waiting import explanations
from unisono.language import language_of
from unisono.language.catalog import catalog, translated

SAY = catalog("ko").say


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Hold job/waits", "job/waits 보류"),
        (
            "starts once ml/big has ended (4 nvidia.com/gpu of a100 on n1, n2; by 12:00, in 2 min"
            " 25 s, its time limit), and ml/small is no longer pending ahead of it in queue q",
            "다음 뒤에 시작한다: ml/big 종료 (n1, n2에서 a100의 4 nvidia.com/gpu; 시간 제한 12:00,"
            " 2분 25초 뒤), 그리고 큐 q에서 앞에 있는 ml/small의 대기 종료",
        ),
        (
            "a100: 8 of 32 nvidia.com/gpu are free on its nodes, 8 nvidia.com/gpu asked for; pod"
            " set main: 0 of 1 pods fit (12 nodes: 8 without zone=b, 3 short of cpu, 1 tainted);"
            " the best node has 0 of 8 nvidia.com/gpu",
            "a100: 그 노드들에 nvidia.com/gpu 32개 중 8개가 비어 있고, 8 nvidia.com/gpu 요청;"
            " 파드 세트 main: 파드 1개 중 0개가 들어간다 (노드 12대: zone=b 없음 8, cpu 부족 3,"
            " 테인트 1). 가장 나은 노드는 8 nvidia.com/gpu 중 0",
        ),
        (
            "Job ml/large waits in queue lq (ClusterQueue cq), position 1 of 2.",
            "Job ml/large: 큐 lq(ClusterQueue cq)에서 2개 중 1번째로 대기 중이다.",
        ),
        ("estimate: unknown: it is held without a release time", None),
        ("quarantine: Xid79", "격리: Xid79"),
        ("not ready, 2 GPUs unhealthy", "준비 안 됨, GPU 2장 비정상"),
    ],
)
def test_sentences_are_put_together_again(text: str, made: str | None) -> None:
    assert SAY(text) == (made or "예상: 알 수 없음: 해제 시각 없이 보류 중이다")


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "job/running", "a of b", "nodes", "ml/a", "8 nvidia.com/gpu", "Succeeded"),
        *("what was never said before", "(((", "; ; ;", ", and , and ", "{0}", "a b has ended"),
        "a" * 10_000,
    ],
)
def test_what_is_not_known_stays_as_it_is(text: str) -> None:
    assert SAY(text) == text


def test_names_are_never_touched() -> None:
    """A job may be called as a message is: what stands in a place is only taken as a sentence."""
    assert SAY("Hold job/running") == "job/running 보류"
    assert SAY("queue running is stopped") == "큐 running 중지됨"
    assert SAY("ClusterQueue {1} is inactive: it is being deleted").startswith("ClusterQueue {1}")
    hostile = "<b>x</b>\\1\\g<0>{0}"
    assert SAY(f"LocalQueue {hostile} does not exist") == f"LocalQueue {hostile}이 없다"


def test_particles_follow_sounds() -> None:
    said = {name: SAY(f"LocalQueue {name} does not exist") for name in ("a", "m", "q1", "q2", "큐")}
    assert said == {
        "a": "LocalQueue a가 없다",
        "m": "LocalQueue m이 없다",
        "q1": "LocalQueue q1이 없다",
        "q2": "LocalQueue q2가 없다",
        "큐": "LocalQueue 큐가 없다",
    }


@pytest.mark.slow
def test_hostile_texts_take_no_time() -> None:
    for piece in (
        "a has ended (",
        "; ",
        ", and ",
        "x: ",
        "pod set main needs ",
        "((",
        "))",
        " of ",
    ):
        assert isinstance(SAY(piece * 400), str)


def test_only_texts_under_their_keys_are_translated() -> None:
    value = {"says": "Hold job/a", "name": "Hold job/a", "rows": [{"says": ["Release x"]}, 3, None]}
    assert translated(value, frozenset({"says"}), "ko") == {
        "says": "job/a 보류",
        "name": "Hold job/a",
        "rows": [{"says": ["x 해제"]}, 3, None],
    }
    assert translated(value, frozenset({"says"}), "en") is value


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "ko"}, "ko"),
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ko_KR"}, "ko"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "ko"}, "en"),
        ({"LANG": "POSIX"}, "en"),
        ({"LANG": "kok_IN"}, "en"),
    ],
)
def test_terminals_say_their_language(environment: dict[str, str], language: str) -> None:
    assert language_of(environment) == language


# ---- what the engine says ------------------------------------------------------------------------

# Two words of English in a row; names of this corpus are one word each, but for two pod sets.
_ENGLISH = re.compile(r"(?<![\w./=:-])(?!more and|main and)[a-z]{2,} [a-z]{2,} ")
# Free text of a manifest's problem, which no catalogue can know.
_FREE = ("a request above its limit",)


def said_by_the_engine(seeds: range) -> Iterator[str]:
    """Yield the sentences of random clusters: of facts, of what would change them, of causes."""
    for seed in seeds:
        world = situation(seed)
        state = restore(world)
        for why in explanations(state):
            for fact in facts_of(why):
                yield from filter(None, (fact["says"], fact["changes"]))
        for waiting in world.waiting[:3]:
            found = diagnose(world, waiting.key)
            if found is not None and found.verdict != "unknown":
                told = root_cause_of(found)
                yield told["says"]
                yield from (one["says"] for one in told["inTheWay"])
                # What refuses in a flavor is cut off where it is very long.
                yield from (one["says"] for one in told["ways"] if len(one["says"]) < 390)


@pytest.mark.slow
def test_all_that_the_engine_says_is_known() -> None:
    count, missing = 0, {}
    for text in said_by_the_engine(range(40)):
        count += 1
        made = SAY(text)
        if text not in _FREE and (made == text or _ENGLISH.search(made)):
            missing[re.sub(r"\d+", "N", text)] = made
    assert count > 500
    assert not missing
