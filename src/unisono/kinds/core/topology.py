"""Which pods of a set must be close to each other: Kueue's annotations on the pod template.

    kueue.x-k8s.io/podset-required-topology: LEVEL       all pods in one domain of that level
    kueue.x-k8s.io/podset-preferred-topology: LEVEL      … if possible, else one level wider, …
    kueue.x-k8s.io/podset-unconstrained-topology: "true" anywhere, but on nodes of the topology
    kueue.x-k8s.io/podset-slice-required-topology: LEVEL every slice of
    kueue.x-k8s.io/podset-slice-size: "N"                … N pods in one domain of that level
    kueue.x-k8s.io/podset-group-name: NAME               sets of one name take the same flavor
    kueue.x-k8s.io/podset-slice-required-topology-constraints: one level in a list of JSON counts as
                                                         the two lines above; several are held

A level is the key of a node label. Spec quota §14.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.decode import Problem
from unisono.kinds.digits import is_digits
from unisono.kinds.json_texts import read_json
from unisono.kinds.meta import wrong_with_label_key

_PREFIX = "kueue.x-k8s.io/podset-"
REQUIRED = _PREFIX + "required-topology"
PREFERRED = _PREFIX + "preferred-topology"
UNCONSTRAINED = _PREFIX + "unconstrained-topology"
SLICE_LEVEL = _PREFIX + "slice-required-topology"
SLICE_SIZE = _PREFIX + "slice-size"
GROUP = _PREFIX + "group-name"
# Several levels of slices, each within the one before: a list of {topology, size} as JSON.
LAYERS = _PREFIX + "slice-required-topology-constraints"
SEVERAL_LAYERS = "asks for slices at several levels of a topology, which is not supported yet"

# The spellings of Go's ParseBool, which Kueue reads the annotation with.
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_COUNT = re.compile(r"[1-9][0-9]{0,8}")


def topology_request(annotations: Mapping[str, str]) -> TopologyRequest | None:
    """Return what the annotations ask for; faults in them are `check_topology`'s business.

    A slice without a wish for the whole set prefers to be together at the widest level, which is
    written as an empty level.
    """
    slice_level, slice_size = "", 0
    if SLICE_LEVEL in annotations and _COUNT.fullmatch(annotations.get(SLICE_SIZE, "")):
        slice_level, slice_size = annotations[SLICE_LEVEL], int(annotations[SLICE_SIZE])
    elif len(layers := layers_of(annotations)) == 1:
        slice_level, slice_size = layers[0]
    if REQUIRED in annotations:
        return TopologyRequest("required", annotations[REQUIRED], slice_level, slice_size)
    if PREFERRED in annotations:
        return TopologyRequest("preferred", annotations[PREFERRED], slice_level, slice_size)
    if annotations.get(UNCONSTRAINED) in _TRUE:
        return TopologyRequest("unconstrained", "", slice_level, slice_size)
    if slice_level:
        return TopologyRequest("preferred", "", slice_level, slice_size)
    return None


def layers_of(annotations: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Return the levels of slices that are listed, with their sizes; nothing if unreadable.

    >>> layers_of({LAYERS: '[{"topology": "rack", "size": 2}]'})
    (('rack', 2),)
    """
    try:
        found = read_json(annotations.get(LAYERS) or "[]")
        return tuple((str(one["topology"]), int(one["size"])) for one in found)
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()


def check_topology(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Yield what is wrong with the topology annotations; `path` is that of the annotations."""
    preferences = [key for key in (REQUIRED, PREFERRED, UNCONSTRAINED) if key in annotations]
    if len(preferences) > 1:
        yield Problem(path, f"only one of {' and '.join(preferences)} may be set")
    for key in (REQUIRED, PREFERRED, SLICE_LEVEL):
        if key in annotations and (wrong := wrong_with_label_key(annotations[key])):
            yield Problem(f"{path}[{key}]", f"must be the key of a node label: {wrong}")
    if annotations.get(UNCONSTRAINED, "true") not in _TRUE | _FALSE:
        yield Problem(f"{path}[{UNCONSTRAINED}]", 'must be "true" or "false"')
    if annotations.get(LAYERS) and not layers_of(annotations):
        yield Problem(f"{path}[{LAYERS}]", "must be a list of topology and size, as JSON")
    yield from _check_slice(annotations, path)
    yield from _check_group(annotations, path)


def _check_slice(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    for key, other in ((SLICE_LEVEL, SLICE_SIZE), (SLICE_SIZE, SLICE_LEVEL)):
        if key in annotations and other not in annotations:
            yield Problem(f"{path}[{key}]", f"needs {other} beside it")
    size = annotations.get(SLICE_SIZE)
    if size is not None and _COUNT.fullmatch(size) is None:
        yield Problem(f"{path}[{SLICE_SIZE}]", f'"{size}" must be a number of pods, at least 1')


def _check_group(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    group = annotations.get(GROUP)
    if group is None:
        return
    at = f"{path}[{GROUP}]"
    if not group or is_digits(group):
        yield Problem(at, f'"{group}" must be a name, not a number')
    if REQUIRED not in annotations and PREFERRED not in annotations:
        yield Problem(at, f"needs {REQUIRED} or {PREFERRED} beside it")
    if SLICE_LEVEL in annotations or SLICE_SIZE in annotations:
        yield Problem(at, "cannot be combined with slices")
