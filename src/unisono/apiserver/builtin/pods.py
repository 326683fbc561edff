"""Pods."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.judge import judge, known_kind
from unisono.apiserver.builtin.pod_checks import check_pod_spec
from unisono.apiserver.builtin.pod_defaults import add_default_tolerations, fill_pod
from unisono.apiserver.builtin.pod_status import fill_pod_status, note_gates, qos_class
from unisono.apiserver.builtin.pod_updates import check_pod_update
from unisono.apiserver.builtin.priorities import set_priority
from unisono.apiserver.builtin.reach import Json, at, child
from unisono.apiserver.builtin.seen import Seen
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.overriding import override

_POD = known_kind("v1", "Pod")
_SOUND: Seen[bool] = Seen()


class PodStrategy(Strategy):
    """A pod: filled in, given its priority and class of service, and then almost frozen."""

    prepares_whole = True
    fills_spec_alone = True
    apart = "hostname"  # pods of an indexed job have one each

    @override
    def prepare_create(self, obj: Json, around: Surroundings) -> None:
        """A new pod waits; what it says about its status does not count."""
        spec = child(obj, "spec")
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        note_gates(obj, around.now)
        # Nobody is asked for a token of this account: pods get no credentials here.
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec.get("serviceAccount") or "default"
        spec["serviceAccount"] = spec["serviceAccountName"]
        set_priority(str(child(obj, "metadata").get("name") or ""), spec, around)
        add_default_tolerations(spec)

    @override
    def prepare_update(self, obj: Json, old: Json, around: Surroundings) -> None:
        """Whoever writes a pod from its manifest again need not repeat what the server added."""
        add_default_tolerations(child(obj, "spec"))

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec, and the status once there is one."""
        fill_pod(obj)
        if obj.get("status") is not None:
            fill_pod_status(obj)

    @override
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """A new pod must be sound; an old one may change in a few ways only."""
        if old is not None:
            yield from check_pod_update(obj, old)
            if obj.get("spec") == old.get("spec"):
                return
        metadata = at(obj, "metadata")
        key = _SOUND.key(obj.get("spec"), metadata.get("labels"), metadata.get("annotations"))
        if _SOUND.get(key):
            return
        causes = list(_check_new(obj))
        if not causes:
            _SOUND.keep(key, verdict=True)
        yield from causes

    @override
    def generation_moves(self, obj: Json, old: Json) -> bool:
        """Only the spec counts."""
        return obj.get("spec") != old.get("spec")


def _check_new(obj: Json) -> Iterator[Cause]:
    found = list(check_pod_spec(obj))
    yield from found
    if not found:
        # Only what Kubernetes lets pass is asked whether our queues can read it.
        assert _POD is not None, "Pod is one of our kinds"
        yield from judge(_POD, obj)[0]
