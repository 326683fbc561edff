"""From client-side to server-side apply: kubectl's note of what it applied last.

`kubectl apply` without --server-side keeps the whole configuration in an annotation. When kubectl
then applies on the server, the fields in that note which nobody changed since are its own, whoever
is listed as their owner, and the note is kept up to date for the way back.
"""

from __future__ import annotations

from typing import Any

import orjson

from unisono.apiserver.patch.compare import claims, differences
from unisono.apiserver.patch.copying import copied
from unisono.apiserver.patch.field_set import Tree, difference
from unisono.apiserver.patch.grain import Grain, Unshareable

Json = dict[str, Any]

NOTE = "kubectl.kubernetes.io/last-applied-configuration"
# All annotations of an object together may not be larger; without room the note is dropped.
MAX_ANNOTATION_BYTES = 262_144


def allowed_conflicts(grain: Grain, live: Json, api_version: str) -> Tree:
    """Return the fields that the note names and that still have the values it gave them."""
    note = _annotations(live).get(NOTE)
    try:
        config = orjson.loads(note) if isinstance(note, str) else None
    except ValueError:
        return {}
    if not isinstance(config, dict) or config.get("apiVersion") != api_version:
        return {}
    try:
        claimed = claims(grain, config)
        came, went = differences(grain, config, live) if config != live else (None, None)
    except Unshareable:
        return {}
    return difference(difference(claimed, came or {}), went or {})


def refreshed(result: Json, config: Json) -> None:
    """Bring the note of an object up to date, if it has one."""
    annotations = _annotations(result)
    if NOTE not in annotations:
        return
    clean = copied(config)
    if isinstance(clean.get("metadata"), dict):
        _annotations(clean).pop(NOTE, None)
    annotations[NOTE] = orjson.dumps(clean, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    size = sum(len(key) + len(str(value).encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATION_BYTES:
        del annotations[NOTE]


def _annotations(obj: Json) -> Json:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
