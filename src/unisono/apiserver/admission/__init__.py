"""What happens to an object on its way in, besides its kind's own rules.

    mutation               other spellings of fields are read as the usual ones; sets the submitter
    suspend                what a queue has to admit first is created suspended, or with a gate
    priority_class_rules   a priority class that its author may not use is refused
    submit_warnings        a job that will probably not start as its author expects gets a warning;
                           kinds that are stored and never acted on get one, too

Nothing is ever sent to a webhook.
"""

from __future__ import annotations

from collections.abc import Iterable

from unisono.apiserver.admission import (
    mutation,
    priority_class_rules,
    submit_warnings,
    suspend,
)
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context
from unisono.kinds.shapes.served import Served


def normalise(served: Served, obj: Json) -> list[str]:
    """Rewrite other spellings of fields in place; return warnings that name the usual ones."""
    return mutation.normalise(served.key, obj)


def mutate(served: Served, obj: Json, old: Json | None, context: Context) -> None:
    """Hold back what a queue has to admit first, and keep what only the server may write."""
    mutation.record(served, obj, old, context)
    priority_class_rules.refuse_class(served, obj, old, context)
    if old is None:
        suspend.hold(served, obj, context)
    else:
        suspend.refuse_changes(served, obj, old)
        suspend.keep_held(served, obj, old, context)


def advise(served: Served, obj: Json, context: Context) -> Iterable[str]:
    """Yield what a new object's author should know."""
    yield from submit_warnings.advise_unsupported(served, obj)
    yield from submit_warnings.advise(served, obj, context)
