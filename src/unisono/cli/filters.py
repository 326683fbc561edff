"""Filters by name: a name that does not exist is an error, never an empty list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from unisono.runtime import AnswerIsNo

if TYPE_CHECKING:
    from unisono.kube.client import Client

_MOST_NAMES = 8  # a line of them; a cluster may have hundreds


def refuse_unknown(what: str, name: str, known: Iterable[str], *, where: str = "") -> None:
    """Refuse a name that is not among those known; say which are near, or which there are.

    >>> refuse_unknown("team", "", ["vision"])
    >>> refuse_unknown("team", "vison", ["nlp", "vision"])
    Traceback (most recent call last):
    unisono.runtime.AnswerIsNo: there is no team "vison"; did you mean "vision"?
    """
    from unisono.kinds.nearest import did_you_mean

    names = sorted(filter(None, set(known)))
    if not name or name in names:
        return
    hint = did_you_mean(name, names)
    if not hint and names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        hint = (
            f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names[:_MOST_NAMES])}{more}"
        )
    raise AnswerIsNo(f'there is no {what} "{name}"{where}{hint}')


async def refuse_unknown_namespace(client: Client, name: str) -> None:
    """Refuse a namespace that does not exist; one that may not be read is believed."""
    from unisono.control.names import NAMESPACE
    from unisono.kube.errors import Forbidden

    if not name:
        return
    try:
        known = [one["metadata"]["name"] for one in (await client.list(NAMESPACE)).items]
    except Forbidden:
        return
    refuse_unknown("namespace", name, known)


def refuse_unknown_queue(
    name: str,
    place: str,
    local_queues: Iterable[tuple[str, str]],
    cluster_queues: Iterable[str],
) -> None:
    """Refuse a queue that is neither a LocalQueue of a place (empty: anywhere) nor a ClusterQueue.

    >>> refuse_unknown_queue("a", "here", [("there", "a")], ["q"])
    Traceback (most recent call last):
    unisono.runtime.AnswerIsNo: LocalQueue "a" is in namespace there, not in here; add -A
    """
    found = list(local_queues)
    queues = list(cluster_queues)
    elsewhere = sorted(namespace for namespace, one in found if one == name)
    if place and elsewhere and place not in elsewhere and name not in queues:
        places = ", ".join(elsewhere[:_MOST_NAMES])
        raise AnswerIsNo(f'LocalQueue "{name}" is in namespace {places}, not in {place}; add -A')
    near = [one for namespace, one in found if place in ("", namespace)]
    refuse_unknown("queue", name, [*near, *queues])
