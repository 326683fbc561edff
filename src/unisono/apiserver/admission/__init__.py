"""What happens to an object on its way in, besides its kind's own rules.

    aliases     other spellings of fields are read as the usual ones
    holding     what a queue has to admit first is created suspended, or with a gate
    submitter   who submitted it is written down
    classes     a priority class that is not for its author is refused
    advice      what will probably not go as its author thinks becomes a warning

Nothing is ever sent to a webhook.
"""

from __future__ import annotations

from collections.abc import Iterable

from unisono.apiserver.admission import advice, aliases, classes, holding, inert, submitter
from unisono.apiserver.strategy import Json, Surroundings
from unisono.kinds.shapes.served import Served


def normalise(served: Served, obj: Json) -> list[str]:
    """Rewrite other spellings of fields in place; return warnings that name the usual ones."""
    return aliases.normalise(served.key, obj)


def mutate(served: Served, obj: Json, old: Json | None, around: Surroundings) -> None:
    """Hold back what a queue has to admit first, and keep what only the server may write."""
    submitter.record(served, obj, old, around)
    classes.refuse_class(served, obj, old, around)
    if old is None:
        holding.hold(served, obj, around)
    else:
        holding.refuse_changes(served, obj, old)
        holding.keep_held(served, obj, old, around)


def advise(served: Served, obj: Json, around: Surroundings) -> Iterable[str]:
    """Yield what a new object's author should know."""
    yield from inert.advise(served, obj)
    yield from advice.advise(served, obj, around)
