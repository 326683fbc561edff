"""Finds pod templates, conditions and the like inside a custom resource, and points at ours.

Custom resources repeat every type that they use: a pod template is 80 kB each time. A node is
known by its field names; it is replaced by a reference to the definition of the built-in kind,
which has all fields of all versions. Where that would lose a rule (an enumeration, a pattern, a
bound), the node is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.kube.form import Json

META: Json = {"$ref": "meta.v1.ObjectMeta"}
# Large types are known by most of their fields, since older schemas lack the newest ones.
_LARGE = {
    "core.v1.PodSpec": 0.6,
    "batch.v1.JobSpec": 0.6,
    "core.v1.Container": 0.7,
    "core.v1.Volume": 0.7,
    "core.v1.SecurityContext": 0.7,
    "core.v1.PodSecurityContext": 0.6,
    "core.v1.ServiceSpec": 0.7,
    "core.v1.ServiceStatus": 1.0,
    "core.v1.PersistentVolumeClaimSpec": 0.7,
    "core.v1.PersistentVolumeClaimStatus": 0.4,
    "core.v1.TopologySpreadConstraint": 0.6,
    "core.v1.EnvVarSource": 0.7,
    "core.v1.VolumeMount": 0.8,
}
# Small ones are known by all of them.
_SMALL = (
    "core.v1.Affinity",
    "core.v1.NodeAffinity",
    "core.v1.PodAffinity",
    "core.v1.PodAntiAffinity",
    "core.v1.EnvVar",
    "core.v1.EnvFromSource",
    "core.v1.ObjectReference",
    "core.v1.ResourceRequirements",
    "core.v1.Taint",
    "core.v1.Toleration",
    "meta.v1.LabelSelector",
    "meta.v1.Condition",
    "autoscaling.v2.MetricSpec",
    "autoscaling.v2.HorizontalPodAutoscalerBehavior",
)
_SAID_BY_DEFINITION = ("type", "properties", "required", "x-kubernetes-map-type")
# What must not be lost, unless our definition has the same.
_RULES = (
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "maxProperties",
    "x-kubernetes-validations",
    "anyOf",
    "oneOf",
    "not",
)
_HAS_OWN_RULES = {"meta.v1.Condition"}


def share(node: Json, definitions: Mapping[str, Json]) -> Json:
    """Return the node with every known type in it replaced by a reference."""
    node = dict(node)
    for key in ("items", "additionalProperties"):
        if key in node:
            node[key] = share(node[key], definitions)
    if "properties" in node:
        node["properties"] = {
            name: META
            if name == "metadata" and _is_metadata(child, definitions)
            else share(child, definitions)
            for name, child in node["properties"].items()
        }
        name = _known(node, definitions)
        if name:
            beside = {key: node[key] for key in node if key not in _SAID_BY_DEFINITION}
            return {"$ref": name} | beside
    return node


def _is_metadata(node: Json, definitions: Mapping[str, Json]) -> bool:
    """Say whether it is an object's metadata, mostly of a template; some list only labels there."""
    fields = set(node.get("properties", ()))
    known = set(definitions["meta.v1.ObjectMeta"]["properties"])
    is_object = node.get("type") == "object" and "additionalProperties" not in node
    return is_object and fields <= known and not _has_rules(node)


def _known(node: Json, definitions: Mapping[str, Json]) -> str | None:
    fields = set(node["properties"])
    template = _template(node, fields)
    if template:
        return template
    for name, share_of_fields in _LARGE.items():
        if _is(fields, definitions[name], share_of_fields) and not _would_lose(node, name):
            return name
    for name in _SMALL:
        definition = definitions[name]
        is_stricter = set(definition.get("required", ())) - set(node.get("required", ()))
        if _is(fields, definition, 1.0) and not is_stricter and not _would_lose(node, name):
            return name
    return None


def _is(fields: set[str], definition: Json, at_least: float) -> bool:
    known = set(definition["properties"])
    return fields <= known and len(fields) >= at_least * len(known)


def _template(node: Json, fields: set[str]) -> str | None:
    """Recognise an object around a spec that was recognised already."""
    spec = node["properties"].get("spec", {}).get("$ref")
    match spec:
        case "core.v1.PodSpec" if fields == {"metadata", "spec"}:
            return "core.v1.PodTemplateSpec"
        case "batch.v1.JobSpec" if fields == {"metadata", "spec"}:
            return "batch.v1.JobTemplateSpec"
        case "core.v1.PersistentVolumeClaimSpec" if fields == {"metadata", "spec"}:
            return "core.v1.PersistentVolumeClaimTemplate"
        case "core.v1.PersistentVolumeClaimSpec" if "apiVersion" in fields:
            return "core.v1.PersistentVolumeClaim"
        case "core.v1.ServiceSpec" if "apiVersion" in fields:
            return "core.v1.Service"
    return None


def _would_lose(node: Json, name: str) -> bool:
    return name not in _HAS_OWN_RULES and _has_rules(node)


def _has_rules(node: Json) -> bool:
    return any(rule in part for part in _parts(node) for rule in _RULES)


def _parts(node: Json) -> Iterator[Json]:
    yield node
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from _parts(node[key])
    for child in node.get("properties", {}).values():
        yield from _parts(child)
