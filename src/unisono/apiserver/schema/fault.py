"""A mistake while its place is still being worked out.

The passes do not carry paths down, because nearly every value is fine and building paths would cost
more than checking. A fault is made where it is found and told its place on the way up, innermost
step first:

    "priority"   a field            → spec.priority
    3            an item of a list  → spec.podSets[3]
    ("a/b",)     a key of a map     → metadata.labels[a/b]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unisono.apiserver.errors import Cause

Step = str | int | tuple[str]

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
WRONG_TYPE = "FieldValueTypeInvalid"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
DUPLICATE = "FieldValueDuplicate"

# A text of the user is quoted up to this length; more would bury the message.
_MAX_QUOTED = 80


_NAMES = ((str, "a string"), (dict, "an object"), (list, "a list"), (int | float, "a number"))


class Fault:
    """One mistake."""

    __slots__ = ("hint", "lacking", "message", "reason", "steps", "suffix")

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        lacking: str = "",
        suffix: str = "",
        hint: Callable[[], str] | None = None,
    ) -> None:
        """Make a fault of the value at hand, of a field it is lacking, or of a place below it.

        `hint` completes the message. It is asked only for the few faults that a client sees:
        guessing what was meant takes far longer than finding that it is wrong.
        """
        self.reason = reason
        self.message = message
        self.hint = hint
        self.lacking = lacking
        self.suffix = suffix
        self.steps: list[Step] = []

    def cause(self) -> Cause:
        """Return it as a client sees it."""
        place = path_of(reversed(self.steps)) + self.suffix
        if self.lacking:
            place = f"{place}.{self.lacking}" if place else self.lacking
        message = self.message + self.hint() if self.hint is not None else self.message
        return Cause(self.reason, message, place.removeprefix("."))


def below(faults: list[Fault], step: Step) -> list[Fault]:
    """Tell faults that they stand one step further down."""
    for found in faults:
        found.steps.append(step)
    return faults


def wrong_type(wanted: str, value: object) -> Fault:
    """Return the fault of a value that is something else altogether."""
    return Fault(WRONG_TYPE, f"must be {wanted}, not {_what(value)}")


def path_of(steps: Iterable[Step]) -> str:
    """Return steps, outermost first, as one path.

    >>> path_of(["spec", "podSets", 0, "labels", ("a/b",)])
    'spec.podSets[0].labels[a/b]'
    """
    path = ""
    for step in steps:
        if isinstance(step, str):
            path = f"{path}.{step}" if path else step
        else:
            path = f"{path}[{step[0] if isinstance(step, tuple) else step}]"
    return path


def quoted(value: object) -> str:
    """Return a value as a message shows it."""
    if isinstance(value, str):
        text = value if len(value) <= _MAX_QUOTED else value[: _MAX_QUOTED - 3] + "..."
        return f'"{text}"'
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return _what(value)


def _what(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return "null"
