"""Queues and flavors without an object of their own, as a Workload's status names them.

The engine knows them by names that no object can have (`volcano/default`), so that they are never
mixed up with real ones; a status may only hold names that an object could have.

    unisono.dev/unlimited    unisono.dev-unlimited     no queue at all
    volcano/NAME             volcano.NAME              a Queue of Volcano
    unisono.dev/any          unisono.dev-any           the flavor of such queues
"""

from __future__ import annotations

from unisono.engine.model.names import FlavorName, QueueName
from unisono.kinds.snapshot.local_queues import UNLIMITED, UNLIMITED_DOOR
from unisono.kinds.volcano.queues import ANY_NODE

# A Volcano queue is a LocalQueue of this name in every namespace (a Workload names its queue so).
VOLCANO_DOOR = "volcano."
_VOLCANO = "volcano/"
_ANY_NODE = "unisono.dev-any"


def written_queue(name: QueueName) -> str:
    """Return the name of a queue as a status has it.

    >>> written_queue(QueueName("volcano/default")), written_queue(QueueName("team-a"))
    ('volcano.default', 'team-a')
    """
    if name == UNLIMITED.name:
        return UNLIMITED_DOOR
    return name.replace(_VOLCANO, VOLCANO_DOOR, 1) if name.startswith(_VOLCANO) else name


def read_queue(written: str, lq: str) -> QueueName:
    """Return the queue that a status names; `lq` is the queue that the Workload asked for.

    >>> read_queue("volcano.x", lq="volcano.x"), read_queue("volcano.x", lq="train")
    ('volcano/x', 'volcano.x')
    """
    if written == UNLIMITED_DOOR:
        return UNLIMITED.name
    if written == lq and lq.startswith(VOLCANO_DOOR):
        return QueueName(_VOLCANO + lq.removeprefix(VOLCANO_DOOR))
    return QueueName(written)


def written_flavor(name: FlavorName) -> str:
    """Return the name of a flavor as a status has it."""
    return _ANY_NODE if name == ANY_NODE.name else name


def read_flavor(written: str) -> FlavorName:
    """Return the flavor that a status names."""
    return ANY_NODE.name if written == _ANY_NODE else FlavorName(written)
