"""Pod templates merged as Kubernetes merges them: maps by key, some lists by an item's name.

`strategic` is what overrides of a TrainJob are (jobs §1.2); `merged` is a plain JSON merge patch.
Both return a new value and change none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.control.actions import Json

# Lists whose items are merged, and the field that says which item is which. All other lists are
# replaced as a whole, tolerations among them.
_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}


def strategic(old: Json, change: Json) -> Json:
    """Return an object with a change merged into it.

    >>> strategic({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "B", "value": "2"}]})
    {'env': [{'name': 'A', 'value': '1'}, {'name': 'B', 'value': '2'}]}
    """
    made = dict(old)
    for key, new in change.items():
        if new is None:
            made.pop(key, None)
        elif isinstance(new, dict):
            before = made.get(key)
            made[key] = strategic(before if isinstance(before, dict) else {}, new)
        elif isinstance(new, list) and key in _MERGE_KEYS and isinstance(made.get(key), list):
            made[key] = _merged_items(made[key], new, _MERGE_KEYS[key])
        else:
            made[key] = new
    return made


def _merged_items(old: Sequence[Json], new: Sequence[Json], key: str) -> list[Json]:
    items = list(old)
    for one in new:
        place = next((at for at, each in enumerate(items) if each.get(key) == one.get(key)), None)
        if place is None:
            items.append(one)
        else:
            items[place] = strategic(items[place], one)
    return items


def merged(old: Any, change: Any) -> Any:
    """Return a value with a JSON merge patch applied.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(change, dict):
        return change
    made = dict(old) if isinstance(old, dict) else {}
    for key, new in change.items():
        if new is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), new)
    return made


def with_variables(env: Sequence[Json] | None, new: Sequence[Json]) -> list[Json]:
    """Return variables with others set; those of the same name are replaced where they stand."""
    items = list(env or ())
    for one in new:
        place = next((at for at, each in enumerate(items) if each["name"] == one["name"]), None)
        if place is None:
            items.append(one)
        else:
            items[place] = one
    return items
