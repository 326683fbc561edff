"""The short words of a scenario for nodes, for pods of others on them, and for where pods may go.

    nodes:  {n1: {gpu: 8, block: b1, rack: r1, taints: ["dedicated=ml:NoSchedule"]}}
    pods:   {daemon: {node: n1, gpu: 1}}
    a job:  {pods: 4, gpu: 8, topology: {required: rack}, ports: [29500], anti_affinity: host}

`zone`, `block`, `rack` and `host` stand for the labels that clouds put on nodes.
"""

from __future__ import annotations

from typing import Any, Literal

from tests.scenarios.reading import Part
from tests.scenarios.words import RESOURCES, key_of, labels, requests, taint
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import (
    HOSTNAME,
    HostPort,
    Node,
    NodePod,
    PodRule,
    PodSelector,
    SpreadRule,
    Topology,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import AffinityTerm, Labels, LabelSelector, Requirement, Taint
from unisono.engine.model.workload import TopologyRequest, WeightedTerm

# What a scenario calls the levels of a topology, widest first, and the labels of nodes they are.
LEVELS = {
    "zone": "topology.kubernetes.io/zone",
    "block": "cloud.provider.com/topology-block",
    "rack": "cloud.provider.com/topology-rack",
    "host": HOSTNAME,
}
TOPOLOGY = "default"  # what `levels` of a cluster makes; flavors without a description have it

_NODE_LEVELS = ("zone", "block", "rack")
_NODE_FIELDS = ("labels", "taints", "ready", "unschedulable", "held_for")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")

# What a pod set may say about nodes and about other pods.
PLACE_FIELDS = (
    *("topology", "group", "labels", "affinity", "prefers", "ports"),
    *("affinity_to", "anti_affinity", "spread"),
)


def level(part: Part) -> str:
    """Return the label that a level stands for; a label may also be written out."""
    word = part.text()
    if word not in LEVELS and "/" not in word:
        part.fail(f"no level is called {word}; there are {', '.join(LEVELS)}")
    return LEVELS.get(word, word)


# --- the cluster ---------------------------------------------------------------------------------


def topology(part: Part) -> Topology:
    """Read the levels of the cluster, widest first."""
    return Topology(TOPOLOGY, tuple(level(item) for item in part.items()))


def node(name: str, part: Part) -> Node:
    """Read a node."""
    given = part.fields(*_NODE_LEVELS, *_NODE_FIELDS, *RESOURCES)
    own = dict(labels(given["labels"])) if "labels" in given else {}
    own.update({LEVELS[word]: given[word].text() for word in _NODE_LEVELS if word in given})
    own.setdefault(HOSTNAME, name)
    taints = given["taints"].items() if "taints" in given else []
    return Node(
        name=NodeName(name),
        labels=tuple(sorted(own.items())),
        taints=tuple(Taint(*taint(item)) for item in taints),
        allocatable=amounts(requests(given)),
        ready=given["ready"].flag() if "ready" in given else True,
        unschedulable="unschedulable" in given and given["unschedulable"].flag(),
        held_for=key_of(given["held_for"].text()) if "held_for" in given else "",
    )


def pod(name: str, part: Part) -> NodePod:
    """Read a pod that another scheduler bound to a node."""
    given = part.fields("node", "labels", "ports", "anti_affinity", "leaves", *RESOURCES)
    own = _own_labels(given, name)
    return NodePod(
        key=key_of(name),
        node=NodeName(given["node"].text()),
        requests=amounts(requests(given)),
        labels=own,
        host_ports=_ports(given),
        anti_affinity=_rules(given.get("anti_affinity"), own),
        leaves_at=Instant(given["leaves"].milliseconds()) if "leaves" in given else None,
    )


# --- where the pods of a set may go --------------------------------------------------------------


def place(given: dict[str, Part], owner: str) -> dict[str, Any]:
    """Return the fields of a pod set that speak of nodes, and of pods on them."""
    own = _own_labels(given, owner)
    found: dict[str, Any] = {
        "labels": own,
        "host_ports": _ports(given),
        "affinity_to": _rules(given.get("affinity_to"), own),
        "anti_affinity": _rules(given.get("anti_affinity"), own),
        "spread": _spread(given.get("spread"), own),
    }
    if "topology" in given:
        found["topology"] = _topology_request(given["topology"])
    if "group" in given:
        found["group"] = given["group"].text()
    if "affinity" in given:
        found["affinity"] = tuple(_term(item) for item in given["affinity"].items())
    if "prefers" in given:
        found["preferred"] = tuple(
            WeightedTerm(weight.whole(), (_requirement(weight, text),))
            for text, weight in given["prefers"].entries()
        )
    return found


def pods_on(part: Part, count: int) -> tuple[tuple[NodeName, int], ...]:
    """Read which nodes pods are on: `n1` (all of them), `[n1, n2]` (one each), `{n1: 3}`."""
    if part.is_scalar():
        return ((NodeName(part.text()), count),)
    if isinstance(part.value, list):
        return tuple((NodeName(item.text()), 1) for item in part.items())
    return tuple((NodeName(name), number.whole()) for name, number in part.entries())


def _topology_request(part: Part) -> TopologyRequest:
    """Read `{required: rack}`, `{preferred: rack, slices: {of: 2, in: host}}`, `unconstrained`."""
    if part.is_scalar():
        return TopologyRequest(part.one_of("unconstrained"))
    given = part.fields("required", "preferred", "slices")
    if "required" in given and "preferred" in given:
        part.fail("names either a required or a preferred level")
    mode: Literal["required", "preferred"] = "required" if "required" in given else "preferred"
    whole = level(given[mode]) if mode in given else ""
    if "slices" not in given:
        return TopologyRequest(mode, whole)
    blocks = given["slices"].fields("of", "in")
    return TopologyRequest(mode, whole, level(blocks["in"]), blocks["of"].whole())


def _term(part: Part) -> AffinityTerm:
    """Read one term of required node affinity: a requirement, or a list of them."""
    return tuple(_requirement(part, text) for text in part.names())


def _requirement(part: Part, text: str) -> Requirement:
    """Read `disk NotIn hdd,tape` or `disk Exists`."""
    key, _, rest = text.partition(" ")
    operator, _, values = rest.partition(" ")
    if operator not in _OPERATORS:
        part.fail(f"must look like `key In a,b`, with one of {', '.join(_OPERATORS)}, not {text!r}")
    return Requirement(
        LEVELS.get(key, key),
        Part(operator).one_of(*_OPERATORS),
        tuple(values.split(",")) if values else (),
    )


def _own_labels(given: dict[str, Part], owner: str) -> Labels:
    """Return the pods' labels; those that speak of pods like themselves need one at least."""
    if "labels" in given:
        return labels(given["labels"])
    speaking = ("affinity_to", "anti_affinity", "spread")
    return (("app", owner),) if any(field in given for field in speaking) else ()


def _ports(given: dict[str, Part]) -> tuple[HostPort, ...]:
    if "ports" not in given:
        return ()
    return tuple(HostPort(item.whole()) for item in given["ports"].items())


def _rules(part: Part | None, own: Labels) -> tuple[PodRule, ...]:
    """Read `rack` (pods like these in one rack, or not), or `{rack: {app: other}}`."""
    if part is None:
        return ()
    if part.is_scalar():
        return (PodRule(_selector(own), level(part)),)
    return tuple(
        PodRule(_selector(labels(wanted)), level(Part(key, wanted.path)))
        for key, wanted in part.entries()
    )


def _spread(part: Part | None, own: Labels) -> tuple[SpreadRule, ...]:
    """Read `zone`, or `{zone: {max_skew: 2, min_domains: 3}}`."""
    if part is None:
        return ()
    if part.is_scalar():
        return (SpreadRule(selector=_selector(own), topology_key=level(part)),)
    found = []
    for key, body in part.entries():
        limits = body.fields("max_skew", "min_domains")
        found.append(
            SpreadRule(
                selector=_selector(own),
                topology_key=level(Part(key, body.path)),
                **{field: number.whole() for field, number in limits.items()},
            )
        )
    return tuple(found)


def _selector(wanted: Labels) -> PodSelector:
    """Return a selector of pods with these labels."""
    return PodSelector(LabelSelector(tuple(Requirement(k, "In", (v,)) for k, v in wanted)))
