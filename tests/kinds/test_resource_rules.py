"""Which resources count, and as what."""

from __future__ import annotations

from typing import Literal

from unisono.kinds.quantity import NANO, Quantity
from unisono.kinds.resource_rules import ResourceRules, Transformation, charged
from unisono.kinds.resource_rules import apply_rules as amounts_after


def rule(
    source: str,
    strategy: Literal["Retain", "Replace"] = "Retain",
    multiply_by: str = "",
    **outputs: str,
) -> Transformation:
    return Transformation(
        input=source,
        strategy=strategy,
        multiply_by=multiply_by,
        outputs=tuple((name, Quantity.from_raw(text)) for name, text in outputs.items()),
    )


def apply_rules(rules: ResourceRules, request: dict[str, int]) -> dict[str, int]:
    return {str(name): amount for name, amount in amounts_after(rules, request)}


def test_without_rules_nothing_changes() -> None:
    request = {"memory": 5, "cpu": 100}
    assert amounts_after(ResourceRules(), request) == (("cpu", 100), ("memory", 5))


def test_scenario_61_a_slice_is_counted_as_its_memory() -> None:
    rules = ResourceRules(transformations=(rule("mig", "Replace", gb="5Gi"),))
    assert apply_rules(rules, {"mig": 1, "cpu": 1000}) == {"cpu": 1000, "gb": 5 * 2**30}


def test_retain_keeps_the_input() -> None:
    rules = ResourceRules(transformations=(rule("gpu", credits="10"),))
    assert apply_rules(rules, {"gpu": 2}) == {"gpu": 2, "credits": 20}


def test_excluded_resources_are_gone_before_anything_else() -> None:
    rules = ResourceRules(
        exclude_prefixes=("example.com/",), transformations=(rule("example.com/nic", credits="1"),)
    )
    assert apply_rules(rules, {"example.com/nic": 2, "gpu": 1}) == {"gpu": 1}


def test_outputs_are_summed_and_join_what_was_requested() -> None:
    rules = ResourceRules(
        transformations=(rule("a", "Replace", credits="1"), rule("b", credits="2"))
    )
    request = {"a": 3, "b": 4, "credits": 5}
    assert apply_rules(rules, request) == {"b": 4, "credits": 5 + 3 + 8}


def test_a_multiplier_counts_only_if_the_pod_requests_it() -> None:
    rules = ResourceRules(transformations=(rule("gpu", multiply_by="gb", credits="1"),))
    assert apply_rules(rules, {"gpu": 2, "gb": 40})["credits"] == 80
    assert apply_rules(rules, {"gpu": 2})["credits"] == 2


def test_cpu_is_counted_in_cores_and_charged_in_thousandths() -> None:
    rules = ResourceRules(transformations=(rule("cpu", credits="2"), rule("gpu", cpu="500m")))
    assert apply_rules(rules, {"cpu": 1500, "gpu": 3}) == {
        "cpu": 3000,
        "credits": 3,
        "gpu": 3,
    }


def test_an_allowance_cannot_make_less_than_nothing() -> None:
    rules = ResourceRules(transformations=(rule("gpu", memory="-1Gi", credits="1"),))
    assert apply_rules(rules, {"gpu": 1, "memory": 5}) == {
        "credits": 1,
        "gpu": 1,
        "memory": 5,
    }


def test_fractions_are_rounded_once_and_up() -> None:
    rules = ResourceRules(transformations=(rule("a", credits="0.1"), rule("b", credits="0.1")))
    assert apply_rules(rules, {"a": 5, "b": 5})["credits"] == 1
    assert charged({"a": NANO}, rules)["credits"] == NANO // 10
