"""Pod templates with what an admission adds, and without it again.

Both return a merge patch of a template: only the parts that may change while a job is suspended.
"""

from __future__ import annotations

from unisono.control.actions import Json
from unisono.control.jobs.adapter import Injection


def injected(template: Json, more: Injection) -> Json:
    """Return the changes that let a template's pods run where they were admitted to."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [one for one in more.tolerations if one not in tolerations]
    gates = list(spec.get("schedulingGates") or ())
    gates += [{"name": name} for name in more.gates if {"name": name} not in gates]
    changed: Json = {
        "metadata": {
            "labels": {**(metadata.get("labels") or {}), **more.labels},
            "annotations": {**(metadata.get("annotations") or {}), **more.annotations},
        },
        "spec": {},
    }
    if more.node_selector:
        changed["spec"]["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **more.node_selector}
    if tolerations != list(spec.get("tolerations") or ()):
        changed["spec"]["tolerations"] = tolerations
    if gates != list(spec.get("schedulingGates") or ()):
        changed["spec"]["schedulingGates"] = gates
    if not changed["spec"]:
        del changed["spec"]
    return changed


def restored(template: Json, original: Json) -> Json:
    """Return the changes that bring a template back to what it was."""
    changed: Json = {"metadata": {}, "spec": {}}
    for part, keys in (
        ("metadata", ("labels", "annotations")),
        ("spec", ("nodeSelector",)),
    ):
        now, then = template.get(part) or {}, original.get(part) or {}
        for key in keys:
            added = {name: None for name in now.get(key) or {} if name not in (then.get(key) or {})}
            if added or then.get(key):
                changed[part][key] = {**added, **(then.get(key) or {})}
    for key in ("tolerations", "schedulingGates"):
        now_list = (template.get("spec") or {}).get(key)
        then_list = (original.get("spec") or {}).get(key)
        if now_list != then_list:
            changed["spec"][key] = then_list
    return changed
