"""Starts in words: no time that is past is promised."""

from __future__ import annotations

from unisono.cli.start_times import cause_of, start_words
from unisono.cli.why.sentences import guess_words

START = "2026-01-01T12:00:00Z"
AT = 1_767_268_800.0


def test_machines_that_are_late_have_no_start() -> None:
    start = {"start": START, "promised": False, "position": 1, "bought": True}
    assert start_words(start, AT - 60).endswith(", when its machines are ready")
    assert start_words(start, AT + 60) == "unknown: its machines are late"


def test_a_begin_time_is_part_of_the_estimate() -> None:
    fact = {"fact": "NotBefore", "begin": int(AT * 1000)}
    answer = {"state": "waiting", "facts": [fact]}
    assert guess_words(answer, AT - 3600).startswith("not before ")


def test_behind_a_strict_head_that_can_never_start_there_is_no_start() -> None:
    ahead = {"message": "never, unless there is a node", "strict": True}
    position = {"place": 2, "of": 2, "behindJob": "ml/head", "ahead": ahead}
    answer = {"state": "waiting", "position": position}
    assert guess_words(answer, AT) == (
        "never as things are: ml/head is ahead of it and can never start"
    )


def test_without_a_root_cause_the_first_fact_is_the_cause() -> None:
    facts = (
        '[{"fact": "Expected", "says": "then"}, {"fact": "Held", "says": "held by its user; x"}]'
    )
    explained = {"type": "unisono.dev/Explanation", "status": "True", "reason": "Hold"}
    explained["message"] = f'{{"stage": "hold", "facts": {facts}}}'
    assert cause_of({"status": {"conditions": [explained]}}) == "held by its user"
