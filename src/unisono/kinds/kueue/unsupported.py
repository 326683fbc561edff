"""Words of Kueue's that mean something there and nothing here: named, never passed over in silence.

Annotations and labels that users write are listed here; those that Kueue's own controllers write to
remember something are not. What no decision may pass over is held instead (`core.topology`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from unisono.kinds.decode import Problem
from unisono.kinds.digits import whole_number
from unisono.kinds.meta import ObjectMeta

_KUEUE = "kueue.x-k8s.io/"
NO_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        f"{_KUEUE}{key}": message
        for key, message in {
            "prebuilt-workload-name": "a job gets a Workload of its own here",
            "pod-group-serving": "a group of pods ends when all of its pods have ended",
            "pod-group-pod-index-label": "pods of a group have no ranks of their own",
            "pod-group-pod-index": "pods of a group have no ranks of their own",
            "pod-index-offset": "pods of a group have no ranks of their own",
            "safe-to-forcefully-delete": "pods on a lost node go as the node's taints say",
            "job-completions-equal-parallelism": "completions of a smaller job stay as they are",
            "workload-allowed-resource-flavors": "every flavor of the queue may be taken",
            "concurrent-admission": "one Workload tries all flavors of its queue",
        }.items()
    }
)


def without_effect(metadata: ObjectMeta, path: str = "metadata") -> Iterator[Problem]:
    """Yield annotations and labels that have no effect; `path` is that of the metadata."""
    words: tuple[tuple[str, Mapping[str, str]], ...] = (
        ("annotations", metadata.annotations),
        ("labels", metadata.labels),
    )
    for part, found in words:
        for key in found.keys() & NO_EFFECT.keys():
            yield Problem(f"{path}.{part}[{key}]", f"has no effect here: {NO_EFFECT[key]}")


PRIORITY_BOOST = f"{_KUEUE}priority-boost"
_MOST = 2**31


def priority_boost(annotations: Mapping[str, str]) -> int:
    """Return what is added to the priority of a Workload; 0 if that cannot be read.

    >>> priority_boost({PRIORITY_BOOST: "-5"}), priority_boost({PRIORITY_BOOST: "high"})
    (-5, 0)
    """
    return 0 if wrong_with_boost(annotations) else int(annotations.get(PRIORITY_BOOST) or 0)


def wrong_with_boost(annotations: Mapping[str, str]) -> str:
    """Return why a boost cannot be read; empty if it can, or there is none."""
    text = annotations.get(PRIORITY_BOOST) or "0"
    digits = text[1:] if text[0] in "+-" else text
    if whole_number(digits) is not None and -_MOST <= int(text) < _MOST:
        return ""
    return f'"{text}" must be a whole number of 32 bits, such as 10 or -10'
