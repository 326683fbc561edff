"""What a pod demands of the pods around it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.manifests import FakeContext, read
from unisono.engine.model.node import HostPort, PodRule, PodSelector, SpreadRule
from unisono.engine.model.selection import LabelSelector, Requirement, selects
from unisono.kinds.core.pod_rules import (
    PodRules,
    host_ports,
    ignored,
    label_keys,
    pod_rules,
)
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.decode import decode
from unisono.kinds.meta import NOTHING

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APP = LabelSelector((Requirement("app", "In", ("x",)),))
LABELS = {"app": "x", "shard": "7"}


def spec_of(raw: dict[str, Any]) -> PodSpec:
    spec, problems = decode(PodSpec, raw)
    assert spec is not None, problems
    return spec


def near(raw: dict[str, Any], *namespaces: str, namespace: str = "own") -> PodRules:
    others = tuple(
        read(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{t: {name}}}}}")
        for name in namespaces
    )
    context = FakeContext(namespace=namespace, others=others)
    return pod_rules(spec_of(raw), LABELS, context)


def away(**term: Any) -> dict[str, Any]:
    base = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "x"}}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [base | term]}}}


def rule(raw: dict[str, Any], *namespaces: str) -> PodRule:
    (made,) = near(raw, *namespaces).anti_affinity
    return made


def test_a_plain_pod_demands_nothing() -> None:
    assert near({}) == PodRules()
    assert near({"affinity": {}}) == PodRules()


# ---- ports ---------------------------------------------------------------------------------------


def container(*ports: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "c", "ports": list(ports)} | more


def test_host_ports_are_taken_container_ports_are_not() -> None:
    spec = spec_of(
        {
            "containers": [
                container({"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}),
                container(
                    {"containerPort": 1, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
                    {"containerPort": 2, "hostPort": 53, "hostIP": "0.0.0.0"},
                    name="d",
                ),
            ]
        }
    )
    assert host_ports(spec) == (
        HostPort(53, "TCP"),
        HostPort(53, "UDP", "10.0.0.1"),
        HostPort(8081),
    )


def test_on_the_hosts_network_every_port_is_the_hosts() -> None:
    raw = {"containers": [container({"containerPort": 29500})]}
    assert host_ports(spec_of(raw)) == ()
    assert host_ports(spec_of(raw | {"hostNetwork": True})) == (HostPort(29500),)


def test_of_init_containers_only_sidecars_keep_their_ports() -> None:
    port = {"containerPort": 1, "hostPort": 1}
    once = {"initContainers": [container(port)]}
    stays = {"initContainers": [container(port, restartPolicy="Always")]}
    assert host_ports(spec_of(once)) == ()
    assert host_ports(spec_of(stays)) == (HostPort(1),)


# ---- affinity ------------------------------------------------------------------------------------


def test_terms_become_rules() -> None:
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "x"}}}
    made = near({"affinity": {"podAffinity": {REQUIRED: [term]}}})
    assert made == PodRules(affinity_to=(PodRule(PodSelector(APP), "rack"),))
    assert near(away()) == PodRules(anti_affinity=(PodRule(PodSelector(APP), "rack"),))


def test_preferred_terms_have_no_effect() -> None:
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": "rack"}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    assert near({"affinity": {"podAffinity": preferred}}) == PodRules()


def test_namespaces_can_be_listed() -> None:
    assert rule(away(namespaces=["b", "a", "b"])).selector == PodSelector(APP, ("a", "b"))


def test_an_empty_namespace_selector_means_every_namespace() -> None:
    made = rule(away(namespaceSelector={}, namespaces=["a"]))
    assert made.selector == PodSelector(APP, every_namespace=True)


def test_a_namespace_selector_is_looked_up() -> None:
    chosen = {"matchExpressions": [{"key": "t", "operator": "In", "values": ["a", "c"]}]}
    made = rule(away(namespaceSelector=chosen, namespaces=["z"]), "a", "b", "c")
    assert made.selector == PodSelector(APP, ("a", "c", "z"))
    # Without a label even the pod's own namespace is not meant; with its name it is.
    nothing = rule(away(namespaceSelector=chosen), "b")
    assert nothing.selector == PodSelector(NOTHING, ())
    assert not selects(nothing.selector.labels, LABELS)


@pytest.mark.parametrize("name", ["own", "unknown"])
def test_a_namespace_can_be_selected_by_its_name(name: str) -> None:
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    assert rule(away(namespaceSelector=chosen)).selector.namespaces == (name,)


def test_an_absent_selector_speaks_of_no_pod_and_an_empty_one_of_all() -> None:
    assert rule(away(labelSelector=None)).selector.labels == NOTHING
    assert rule(away(labelSelector={})).selector.labels == LabelSelector()


def test_label_keys_become_part_of_the_selector() -> None:
    made = rule(away(matchLabelKeys=["shard", "absent"], mismatchLabelKeys=["app"]))
    assert made.selector.labels == LabelSelector(
        (*APP.requirements, Requirement("shard", "In", ("7",)), Requirement("app", "NotIn", ("x",)))
    )
    # An API server has put them there already.
    stored = {"matchExpressions": [{"key": "shard", "operator": "In", "values": ["7"]}]}
    again = rule(away(labelSelector=stored, matchLabelKeys=["shard"]))
    assert again.selector.labels.requirements == (Requirement("shard", "In", ("7",)),)
    assert rule(away(labelSelector=None, matchLabelKeys=["shard"])).selector.labels == NOTHING


# ---- spreading -----------------------------------------------------------------------------------


def spread(**more: Any) -> dict[str, Any]:
    base = {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    return {"topologySpreadConstraints": [base | more]}


def test_spread_constraints_become_rules() -> None:
    assert near(spread()).spread == (
        SpreadRule(selector=PodSelector(APP), topology_key="zone", max_skew=2, min_domains=1),
    )
    (made,) = near(spread(minDomains=3, matchLabelKeys=["shard"])).spread
    assert made.min_domains == 3
    assert made.selector.labels.requirements[-1] == Requirement("shard", "In", ("7",))
    assert near(spread(whenUnsatisfiable="ScheduleAnyway")) == PodRules()


def test_policies_about_nodes_are_ignored_aloud() -> None:
    def said(**more: Any) -> list[str]:
        return [one.path for one in ignored(spec_of(spread(**more)))]

    assert said() == said(nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore") == []
    assert said(nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor") == [
        "topologySpreadConstraints[0].nodeAffinityPolicy",
        "topologySpreadConstraints[0].nodeTaintsPolicy",
    ]
    assert said(nodeTaintsPolicy="Honor", whenUnsatisfiable="ScheduleAnyway") == []


def test_which_labels_rules_look_at() -> None:
    expressions = [{"key": "e", "operator": "Exists"}]
    raw = away(
        labelSelector={"matchLabels": {"a": "1"}, "matchExpressions": expressions},
        matchLabelKeys=["m"],
        mismatchLabelKeys=["n"],
    ) | spread(labelSelector={"matchLabels": {"s": "1"}}, matchLabelKeys=["k"])
    assert sorted(label_keys(spec_of(raw))) == ["a", "e", "k", "m", "n", "s"]
    assert list(label_keys(spec_of({}))) == []
