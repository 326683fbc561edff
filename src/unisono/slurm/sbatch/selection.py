"""Which nodes a job may use: partition, features, type of GPU, names; as node affinity."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.slurm.host_list import BadHostList, expand
from unisono.slurm.labels import GPU_TYPE, feature_label
from unisono.slurm.lite_typing import Json
from unisono.slurm.sbatch.layout import BadRequest

_HOSTNAME = "kubernetes.io/hostname"
_FEATURE = re.compile(r"[A-Za-z0-9_.:+=-]+")
# Labels of others that name the sort of a node's GPUs.
_GPU_LABELS = (GPU_TYPE, "karpenter.k8s.aws/instance-gpu-name", "nvidia.com/gpu.product")


def affinity(options: Mapping[str, str], gpu_type: str) -> tuple[Json, list[str]]:
    """Return the node affinity of a job's pods, and what is only nearly so."""
    warnings: list[str] = []
    always = _named(options)
    choices: list[list[Json]] = [
        [_has(feature_label(name)) for name in names]
        for names in _alternatives(options.get("constraint", ""), warnings)
    ] or [[]]
    if gpu_type:
        kinds = [{"key": key, "operator": "In", "values": [gpu_type]} for key in _GPU_LABELS]
        choices = [[*choice, kind] for choice in choices for kind in kinds]
    terms = [{"matchExpressions": [*always, *choice]} for choice in choices if always or choice]
    made: Json = {}
    if terms:
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    wished = [
        {
            "weight": 100,
            "preference": {"matchExpressions": [_has(feature_label(name)) for name in names]},
        }
        for names in _alternatives(options.get("prefer", ""), warnings)
    ]
    if wished:
        made["preferredDuringSchedulingIgnoredDuringExecution"] = wished
    return made, warnings


def refuse_unknown(options: Mapping[str, str], nodes: list[Json]) -> None:
    """Refuse nodes and features that a cluster with a slurm.conf does not have."""
    names = {node["metadata"]["name"] for node in nodes}
    try:
        if options.get("nodelist") and not set(expand(options["nodelist"])) <= names:
            raise BadRequest("Invalid node name specified")
    except BadHostList:
        raise BadRequest("Invalid node name specified") from None
    there = {label for node in nodes for label in node["metadata"].get("labels") or ()}
    choices = _alternatives(options.get("constraint", ""), [])
    if choices and not any({feature_label(one) for one in choice} <= there for choice in choices):
        raise BadRequest("Invalid feature specification")


def _named(options: Mapping[str, str]) -> list[Json]:
    found: list[Json] = []
    try:
        if options.get("nodelist"):
            names = expand(options["nodelist"])
            found.append({"key": _HOSTNAME, "operator": "In", "values": names})
        if options.get("exclude"):
            names = expand(options["exclude"])
            found.append({"key": _HOSTNAME, "operator": "NotIn", "values": names})
    except BadHostList as error:
        raise BadRequest(f"Invalid node name specified: {error}") from None
    return found


def _has(label: str) -> Json:
    return {"key": label, "operator": "In", "values": ["true"]}


def _alternatives(text: str, warnings: list[str]) -> list[list[str]]:
    """Return a constraint as alternatives of features that must all be there.

    >>> _alternatives("a&b|c", []), _alternatives("[x|y]", [])
    ([['a', 'b'], ['c']], [['x'], ['y']])
    >>> _alternatives("(a|b)&c", [])
    [['a', 'c'], ['b', 'c']]
    """
    if not text:
        return []
    if "[" in text:
        warnings.append(f"--constraint={text}: nodes may have different ones of the alternatives")
    counted = re.sub(r"\*\d+", "", text)
    if counted != text:
        warnings.append(f"--constraint={text}: counts of nodes are ignored")
    words = re.findall(r"[()&|,]|[^()&|,]+", counted.replace("[", "(").replace("]", ")"))
    made, rest = _either(words)
    if rest:
        raise BadRequest("Invalid feature specification")
    return made


def _either(words: list[str]) -> tuple[list[list[str]], list[str]]:
    left, rest = _both(words)
    while rest and rest[0] == "|":
        more, rest = _both(rest[1:])
        left = [*left, *more]
    return left, rest


def _both(words: list[str]) -> tuple[list[list[str]], list[str]]:
    left, rest = _one(words)
    while rest and rest[0] in "&,":
        more, rest = _one(rest[1:])
        left = [[*one, *other] for one in left for other in more]
    return left, rest


def _one(words: list[str]) -> tuple[list[list[str]], list[str]]:
    if words and words[0] == "(":
        inside, rest = _either(words[1:])
        if not rest or rest[0] != ")":
            raise BadRequest("Invalid feature specification")
        return inside, rest[1:]
    if not words or _FEATURE.fullmatch(words[0]) is None:
        raise BadRequest("Invalid feature specification")
    return [[words[0]]], words[1:]
