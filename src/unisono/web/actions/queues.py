"""Actions on a ClusterQueue: stop it, with or without what runs, and resume it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from unisono.control.names import CLUSTER_QUEUE
from unisono.engine.model.names import QueueName
from unisono.engine.model.queue import StopPolicy
from unisono.engine.state.changes import Change, QueueSet
from unisono.engine.state.cluster import ClusterState
from unisono.kube.form import Json
from unisono.web.actions.action import (
    Action,
    Asked,
    CannotAct,
    Edit,
    Field,
    Here,
    Prepared,
    merge_command,
    no_fields,
    patch,
    patches_it,
)

_HOLD, _DRAIN = "Hold", "HoldAndDrain"
_WAYS = ((_HOLD, "admit nothing new; what runs goes on"), (_DRAIN, "evict what runs as well"))


def _stopped(queue: Json) -> bool:
    return str((queue.get("spec") or {}).get("stopPolicy") or "None") != "None"


def _with(name: str, stop: StopPolicy) -> Edit:
    def edit(state: ClusterState) -> Iterator[Change]:
        queue = state.config.queues.get(QueueName(name))
        if queue is not None:
            yield QueueSet(replace(queue, stop=stop))

    return edit


async def _stop_fields(here: Here, queue: Json) -> Sequence[Field] | None:
    if _stopped(queue):
        return None
    return (Field(name="policy", label="How", kind="choice", value=_HOLD, options=_WAYS),)


async def _stop(here: Here, queue: Json, asked: Asked) -> Prepared:
    if _stopped(queue):
        raise CannotAct("it is stopped already")
    name = queue["metadata"]["name"]
    policy = asked.field("policy", "How")
    changes = {"spec": {"stopPolicy": policy}}
    if policy == _HOLD:
        says, stop = f"Nothing of queue {name} is admitted until it is resumed.", _HOLD
    elif policy == _DRAIN:
        says = f"Everything that queue {name} admitted is evicted and waits until it is resumed."
        stop = _DRAIN
    else:
        raise CannotAct(f"How: must be {_HOLD} or {_DRAIN}, not {policy}")
    return Prepared(
        title=f"Stop queue {name}",
        done=f"queue {name} is stopped",
        writes=(patch(queue, changes),),
        commands=(merge_command(queue, changes),),
        says=(says,),
        edit=_with(name, "Hold" if stop == _HOLD else "HoldAndDrain"),
    )


async def _resume_fields(here: Here, queue: Json) -> Sequence[Field] | None:
    return await no_fields(here, queue) if _stopped(queue) else None


async def _resume(here: Here, queue: Json, asked: Asked) -> Prepared:
    if not _stopped(queue):
        raise CannotAct("it is not stopped")
    name = queue["metadata"]["name"]
    changes = {"spec": {"stopPolicy": "None"}}
    return Prepared(
        title=f"Resume queue {name}",
        done=f"queue {name} admits again",
        writes=(patch(queue, changes),),
        commands=(merge_command(queue, changes),),
        says=(f"What waits in queue {name} is evaluated again in the next scheduling cycle.",),
        edit=_with(name, "None"),
    )


TARGET = CLUSTER_QUEUE
ACTIONS: Sequence[Action] = (
    Action("stop", "Stop", _stop, _stop_fields, patches_it),
    Action("resume", "Resume", _resume, _resume_fields, patches_it),
)
