"""What one pod costs: examples from the spec, and a plain second opinion for random pods."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.manifests import read
from unisono.kinds.core.limit_ranges import namespace_limits
from unisono.kinds.core.requests import PodCost, PodCosting, pod_cost
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.decode import decode
from unisono.kinds.quantity import Quantity
from unisono.kinds.resource_rules import ResourceRules, Transformation

GI = 2**30


def spec_of(raw: dict[str, Any]) -> PodSpec:
    spec, problems = decode(PodSpec, raw)
    assert spec is not None, problems
    return spec


def cost(raw: dict[str, Any], **costing: Any) -> PodCost:
    return pod_cost(spec_of(raw), PodCosting(**costing))


def requests(raw: dict[str, Any], **costing: Any) -> dict[str, int]:
    return {str(name): amount for name, amount in cost(raw, **costing).requests}


def container(name: str = "c", **requests: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def test_containers_are_summed() -> None:
    raw = {"containers": [container("a", cpu="500m", memory="1Gi"), container("b", cpu=2)]}
    assert requests(raw) == {"cpu": 2500, "memory": GI}


def test_an_init_container_counts_only_where_it_asks_for_more() -> None:
    raw = {
        "containers": [container("a", cpu=2, memory="1Gi")],
        "initContainers": [container("i", cpu=1, memory="4Gi")],
    }
    assert requests(raw) == {"cpu": 2000, "memory": 4 * GI}


def test_a_sidecar_runs_beside_the_containers_and_beside_later_init_containers() -> None:
    sidecar = container("proxy", cpu=1) | {"restartPolicy": "Always"}
    alone = {"containers": [container("a", cpu=2)], "initContainers": [sidecar]}
    assert requests(alone) == {"cpu": 3000}
    heavy_init_after = [sidecar, container("i", cpu=5)]
    heavy_init_before = [container("i", cpu=5), sidecar]
    assert requests(alone | {"initContainers": heavy_init_after}) == {"cpu": 6000}
    assert requests(alone | {"initContainers": heavy_init_before}) == {"cpu": 5000}


def test_a_missing_request_is_the_limit() -> None:
    raw = {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    assert requests(raw) == {"nvidia.com/gpu": 8}


def test_no_resources_at_all_ask_for_nothing() -> None:
    assert requests({"containers": [{"name": "a"}]}) == {}


def test_rounding_happens_once_at_the_end() -> None:
    tiny = [container("a", cpu="500u"), container("b", cpu="500u")]
    assert requests({"containers": tiny}) == {"cpu": 1}
    assert requests({"containers": [container("a", memory="1500m")]}) == {"memory": 2}


def test_pod_level_resources_replace_what_the_containers_sum_up_to() -> None:
    raw = {
        "containers": [container("a", cpu=1, memory="1Gi", **{"nvidia.com/gpu": 4})],
        "resources": {"requests": {"cpu": 4}},
        "overhead": {"cpu": "250m"},
    }
    assert requests(raw) == {"cpu": 4250, "memory": GI, "nvidia.com/gpu": 4}


def test_a_pod_level_limit_is_the_request_only_where_no_container_asks() -> None:
    raw = {
        "containers": [container("a", cpu=2)],
        "resources": {"limits": {"cpu": 8, "memory": "8Gi"}},
    }
    assert requests(raw) == {"cpu": 2000, "memory": 8 * GI}


def test_a_runtime_class_adds_its_overhead_unless_the_pod_has_its_own() -> None:
    kata = {"kata": {"cpu": Quantity.from_raw("100m")}}
    raw = {"containers": [container("a", cpu=1)], "runtimeClassName": "kata"}
    assert requests(raw, runtime_overhead=kata) == {"cpu": 1100}
    assert requests(raw | {"overhead": {"cpu": "200m"}}, runtime_overhead=kata) == {"cpu": 1200}
    assert requests(raw | {"runtimeClassName": "other"}, runtime_overhead=kata) == {"cpu": 1000}


def test_pods_that_differ_in_one_word_about_gpus_cost_differently() -> None:
    spec = spec_of({"containers": [container(cpu="1")]})
    plain, half = pod_cost(spec), pod_cost(spec, annotations={"gpu-fraction": "0.5"})
    assert dict(plain.requests) == {"cpu": 1000}
    assert dict(half.requests) == {"cpu": 1000, "nvidia.com/gpu-milli": 500}
    assert pod_cost(spec, annotations={"note": "no word about GPUs"}) == plain


def test_a_request_above_its_limit_can_never_run() -> None:
    over = {"requests": {"cpu": 8, "memory": "1Gi"}, "limits": {"cpu": 4, "memory": "1Gi"}}
    made = cost({"containers": [{"name": "a", "resources": over}]})
    assert made.misconfigured == "container a requests 8 cpu; its limit is 4 cpu"
    made = cost({"containers": [container("a")], "resources": over})
    assert made.misconfigured == "the pod requests 8 cpu; its limit is 4 cpu"


def test_containers_may_not_ask_for_more_than_the_whole_pod() -> None:
    made = cost({"containers": [container("a", cpu=3)], "resources": {"requests": {"cpu": 2}}})
    assert made.misconfigured == "the containers ask for 3 cpu, the whole pod only for 2 cpu"


LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec:
  limits:
  - type: Container
    default: {cpu: 2, memory: 4Gi}
    defaultRequest: {cpu: 500m}
"""


def test_what_the_pod_has_as_a_whole_beats_the_defaults_of_its_containers() -> None:
    limits = namespace_limits(
        [read(LIMITS.replace("cpu: 2, memory: 4Gi", "").replace("500m", "3, memory: 1Gi"))]
    )
    whole = {"containers": [container("a")], "resources": {"limits": {"cpu": 4}}}
    assert requests(whole, limits=limits) == {"cpu": 4000, "memory": GI}
    asks = {"containers": [container("a", cpu=1)], "resources": {"limits": {"cpu": 4}}}
    assert requests(asks, limits=limits) == {"cpu": 1000, "memory": GI}
    small = {"containers": [container("a")], "resources": {"limits": {"cpu": 2}}}
    made = cost(small, limits=limits)
    assert made.misconfigured == "the containers ask for 3 cpu, the whole pod only for 2 cpu"


def test_limit_range_defaults_fill_what_is_missing() -> None:
    limits = namespace_limits([read(LIMITS)])
    assert requests({"containers": [container("a")]}, limits=limits) == {
        "cpu": 500,
        "memory": 4 * GI,
    }
    own_limit = {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}]}
    assert requests(own_limit, limits=limits)["cpu"] == 1000
    too_much = cost({"containers": [container("a", cpu=3)]}, limits=limits)
    assert too_much.misconfigured == "container a requests 3 cpu; its limit is 2 cpu"


def test_a_pod_outside_the_bounds_of_its_namespace_can_never_run() -> None:
    text = LIMITS.replace("Container", "Pod").replace("default:", "max:")
    text = text.replace("defaultRequest:", "min:")
    limits = namespace_limits([read(text)])
    full = {"requests": {"cpu": 3, "memory": "1Gi"}, "limits": {"cpu": 3, "memory": "1Gi"}}
    made = cost({"containers": [{"name": "a", "resources": full}]}, limits=limits)
    assert made.misconfigured == "a pod asks for 3 cpu; the maximum is 2 cpu (LimitRange bounds)"


def test_rules_change_the_charge_and_not_the_need() -> None:
    """Spec quota, scenario 61: a slice of a GPU is charged as gigabytes."""
    mig = Transformation(
        input="nvidia.com/mig-1g.5gb",
        strategy="Replace",
        outputs=(("example.com/gpu-memory", Quantity.from_raw("5Gi")),),
    )
    rules = ResourceRules(exclude_prefixes=("networking.example.com/",), transformations=(mig,))
    raw = {
        "containers": [
            container("a", cpu=1, **{"nvidia.com/mig-1g.5gb": 4, "networking.example.com/vpc": 1})
        ]
    }
    made = cost(raw, rules=rules)
    assert dict(made.charged) == {"cpu": 1000, "example.com/gpu-memory": 20 * GI}
    assert requests(raw, rules=rules)["nvidia.com/mig-1g.5gb"] == 4


# ---- a second opinion -------------------------------------------------------------------------

AMOUNTS = {"cpu": ["0", "1u", "499u", "250m", "1", "1.5", "3"], "memory": ["0", "1m", "1Ki", "7"]}
VALUES = {
    "1u": Fraction(1, 10**6),
    "499u": Fraction(499, 10**6),
    "250m": Fraction(1, 4),
    "1m": Fraction(1, 1000),
    "1Ki": Fraction(1024),
    "1.5": Fraction(3, 2),
}

resource_lists = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(texts) for name, texts in AMOUNTS.items()}
)
resources = st.fixed_dictionaries(
    {}, optional={"requests": resource_lists, "limits": resource_lists}
)
containers = st.fixed_dictionaries({"resources": resources})
pods = st.fixed_dictionaries(
    {
        "containers": st.lists(containers, min_size=1, max_size=3),
        "initContainers": st.lists(st.tuples(containers, st.booleans()), max_size=4),
        "overhead": resource_lists,
    }
)


def value(text: str) -> Fraction:
    return VALUES[text] if text in VALUES else Fraction(text)


def asked(one: dict[str, Any], resource: str) -> Fraction | None:
    requests = one["resources"].get("requests", {})
    limits = one["resources"].get("limits", {})
    text = requests.get(resource, limits.get(resource))
    return None if text is None else value(text)


def oracle(pod: dict[str, Any], resource: str) -> int | None:
    """Play the pod's life minute by minute and remember the worst minute."""
    containers = [*pod["containers"], *(one for one, _ in pod["initContainers"])]
    known = [asked(one, resource) for one in containers]
    worst, running = Fraction(0), Fraction(0)
    for one, is_sidecar in pod["initContainers"]:
        now = asked(one, resource) or Fraction(0)
        worst = max(worst, running + now)
        if is_sidecar:
            running += now
    for one in pod["containers"]:
        running += asked(one, resource) or Fraction(0)
    worst = max(worst, running)
    if all(amount is None for amount in known) and resource not in pod["overhead"]:
        return None
    worst += value(pod["overhead"][resource]) if resource in pod["overhead"] else 0
    return ceil(worst * 1000) if resource == "cpu" else ceil(worst)


@given(pods)
def test_any_pod_costs_what_its_worst_minute_costs(pod: dict[str, Any]) -> None:
    named = {
        "containers": [one | {"name": f"c{i}"} for i, one in enumerate(pod["containers"])],
        "initContainers": [
            one | {"name": f"i{i}"} | ({"restartPolicy": "Always"} if is_sidecar else {})
            for i, (one, is_sidecar) in enumerate(pod["initContainers"])
        ],
        "overhead": pod["overhead"],
    }
    expected = {name: oracle(pod, name) for name in AMOUNTS}
    known = {name: amount for name, amount in expected.items() if amount is not None}
    assert requests(named) == known


def test_an_operator_s_price_of_parts_of_gpus_is_what_quota_counts() -> None:
    def priced(name: str) -> Transformation:
        total = (f"nvidia.com/total-{name}", Quantity.from_raw(1))
        return Transformation(
            input=f"nvidia.com/{name}",
            strategy="Replace",
            multiply_by="nvidia.com/gpu",
            outputs=(total,),
        )

    def asks(**amounts: int) -> tuple[dict[str, int], dict[str, int], str]:
        written = {f"nvidia.com/{name}": amount for name, amount in amounts.items()}
        rules = ResourceRules(transformations=(priced("gpucores"), priced("gpumem")))
        made = cost({"containers": [container("a", **written)]}, rules=rules)
        of_nodes, of_quota = dict(made.requests), dict(made.charged)
        short = [
            {name.removeprefix("nvidia.com/"): amount for name, amount in one.items()}
            for one in (of_nodes, of_quota)
        ]
        return short[0], short[1], made.misconfigured

    assert asks(gpu=2, gpucores=20, gpumem=1024) == (
        {"gpu": 2},
        {"gpu": 2, "total-gpucores": 40, "total-gpumem": 2048},
        "",
    )
    assert asks(gpu=1, gpucores=10) == ({"gpu-milli": 100}, {"gpu": 1, "total-gpucores": 10}, "")
    assert asks(gpu=1, gpumem=1024) == ({"gpu": 1}, {"gpu": 1, "total-gpumem": 1024}, "")
    assert asks(gpumem=1024) == ({"gpu": 1}, {"total-gpumem": 1024}, "")
    unpriced = {"containers": [container("a", **{"nvidia.com/gpu": 2, "nvidia.com/gpucores": 20})]}
    assert "can be had of one only" in cost(unpriced).misconfigured
