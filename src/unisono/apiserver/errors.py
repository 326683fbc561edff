"""What the API answers when it says no: a `Status` with a code, a reason and causes.

Everything below the HTTP adapter raises `ApiError`; nothing else may leave a handler.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong: a reason such as FieldValueRequired, a sentence, a field path."""

    reason: str
    message: str
    field: str = ""

    def as_json(self) -> dict[str, str]:
        """Return it as a Status carries it."""
        raw = {"reason": self.reason, "message": self.message}
        return {**raw, "field": self.field} if self.field else raw


# What a person reads of it; a hostile object can have a mistake in each of a million items.
MAX_CAUSES = 50
# A field's path has every key above it, and keys of maps may be as long as the body.
_MAX_TEXT = 1024
# Of a whole message, which often quotes what it is about: a name or a version of any length.
_MAX_MESSAGE = 32 * 1024


def _cut(text: str, most: int = _MAX_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _shortened(cause: Cause) -> Cause:
    if len(cause.message) <= _MAX_TEXT and len(cause.field) <= _MAX_TEXT:
        return cause
    return Cause(cause.reason, _cut(cause.message), _cut(cause.field))


class ApiError(Exception):
    """A request that is refused."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        name: str = "",
        group: str = "",
        kind: str = "",
        uid: str = "",
        causes: Iterable[Cause] = (),
        retry_after: int = 0,
        continue_token: str = "",
    ) -> None:
        """Make a refusal; `kind` is the plural for lookups and the Kind for invalid objects."""
        message = _cut(message, _MAX_MESSAGE)
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.name = name
        self.group = group
        self.kind = kind
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.continue_token = continue_token

    def status(self) -> dict[str, Any]:
        """Return the Status object that the client gets."""
        details: dict[str, Any] = {}
        for key, value in (
            ("name", self.name),
            ("group", self.group),
            ("kind", self.kind),
            ("uid", self.uid),
        ):
            if value:
                details[key] = value
        if self.causes:
            details["causes"] = [cause.as_json() for cause in self.causes]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,  # also when it is empty: some clients look into it unasked
            "code": self.code,
        }
        return status


def bad_request(message: str, *, causes: Iterable[Cause] = ()) -> ApiError:
    """The request itself makes no sense."""
    return ApiError(400, "BadRequest", message, causes=causes)


def not_found(plural: str, name: str, *, group: str = "") -> ApiError:
    """There is no such object."""
    resource = f"{plural}.{group}" if group else plural
    message = f'{resource} "{name}" not found'
    return ApiError(404, "NotFound", message, name=name, group=group, kind=plural)


def already_exists(plural: str, name: str, *, group: str = "", why: str = "") -> ApiError:
    """There is one of that name."""
    resource = f"{plural}.{group}" if group else plural
    message = f'{why}{resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, name=name, group=group, kind=plural)


def conflict(
    plural: str, name: str, why: str, *, group: str = "", causes: Iterable[Cause] = ()
) -> ApiError:
    """Another write came first."""
    resource = f"{plural}.{group}" if group else plural
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, name=name, group=group, kind=plural, causes=causes)


def invalid(kind: str, name: str, causes: Iterable[Cause], *, group: str = "") -> ApiError:
    """The object breaks a rule of its kind, or many; only the first ones are told."""
    every = tuple(causes)
    listed = tuple(_shortened(cause) for cause in every[:MAX_CAUSES])
    resource = f"{kind}.{group}" if group else kind
    texts = [
        f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in listed
    ]
    if len(every) > len(listed):
        texts.append(f"and {len(every) - len(listed)} more")
    listing = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    name = _cut(name)
    message = f'{resource} "{name}" is invalid: {listing}'
    return ApiError(422, "Invalid", message, name=name, group=group, kind=kind, causes=listed)


def forbidden(
    plural: str, name: str, why: str, *, group: str = "", causes: Iterable[Cause] = ()
) -> ApiError:
    """The caller may not do this, or no user may."""
    resource = f"{plural}.{group}" if group else plural
    quoted = f' "{name}"' if name else ""
    message = f"{resource}{quoted} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, name=name, group=group, kind=plural, causes=causes)


def method_not_allowed() -> ApiError:
    """The address is known, the verb is not."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def not_acceptable() -> ApiError:
    """The client wants a form that we do not have."""
    return ApiError(406, "NotAcceptable", "only application/json (and its Table form) can be sent")


def unsupported_media_type(message: str) -> ApiError:
    """The client sent a form that we cannot read."""
    return ApiError(415, "UnsupportedMediaType", message)


def too_large(limit: int, advice: str = "") -> ApiError:
    """The body is larger than any object may be; say what to do, if that is known."""
    message = f"the request body is larger than {limit} bytes"
    return ApiError(413, "RequestEntityTooLarge", f"{message}; {advice}" if advice else message)


def expired(message: str, *, continue_token: str = "") -> ApiError:
    """The past that was asked for is forgotten."""
    return ApiError(410, "Expired", message, continue_token=continue_token)
