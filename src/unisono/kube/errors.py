"""What can go wrong between us and a Kubernetes API, as exceptions.

KubeError
├─ StatusError               the API answered with a Status: code, reason, details, causes
│  ├─ BadRequest         400   the request makes no sense
│  ├─ Unauthorized       401   the API does not know us
│  ├─ Forbidden          403   it knows us and says no
│  ├─ NotFound           404   there is no such object, or no such kind
│  ├─ Conflict           409   another writer was faster: read again
│  ├─ AlreadyExists      409   there is one of that name
│  ├─ Gone               410   that past is forgotten: list again
│  ├─ Invalid            422   the object breaks a rule of its kind
│  ├─ TooManyRequests    429   later
│  └─ ServerError      5xx   later, or never
├─ Unreachable           there was no answer
├─ BadResponse             there was one that we cannot read
├─ UnknownKind           the API does not serve that kind
├─ Expired               what a write was decided on has changed: nothing was sent, decide again
├─ NotLeading            another replica may be in charge: nothing is written
├─ LoginFailed           the program that logs us in failed; it may succeed later
└─ BadConfig             a kubeconfig or a certificate is wrong and must be corrected
"""

from __future__ import annotations

from typing import Any

import msgspec

from unisono.kinds.digits import whole_number

# Of an answer that is no Status (a proxy's page of HTML), so much is shown.
_MOST_SHOWN = 200


class KubeError(Exception):
    """Base of everything this package raises on purpose."""


class Unreachable(KubeError):
    """The connection failed or the answer did not come in time.

    `sent` says whether the API may have carried the request out all the same.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class BadResponse(KubeError):
    """The API sent something that is not what its documentation promises."""


class UnknownKind(KubeError):
    """The API does not serve this kind; perhaps its CRD is not installed."""


class Expired(KubeError):
    """What a write was decided on changed before it was sent: decide again."""


class NotLeading(KubeError):
    """This replica is not, or no longer, the leader, so it must not write."""


class LoginFailed(KubeError):
    """The program that logs us in failed this time."""


class BadConfig(KubeError):
    """Something about how to reach the cluster is wrong; the text says what to change."""


def is_in_doubt(error: KubeError) -> bool:
    """Say whether a write that ended so may have been carried out, or may be yet.

    Behind a gateway, or an API server whose etcd was slow, any 5xx may follow a write that is
    stored; a 4xx is said before anything is.
    """
    match error:
        case Unreachable():
            return error.sent
        case ServerError() | BadResponse():
            return True
        case _:
            return False


class Cause(msgspec.Struct, frozen=True):
    """One thing that is wrong, as a Status lists it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a Status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] | None = ()
    retry_after_seconds: int = 0


class ListMeta(msgspec.Struct, frozen=True, rename={"continue_token": "continue"}):
    """Where to go on, if the Status says so."""

    continue_token: str = ""


class Status(msgspec.Struct, frozen=True):
    """The API's way of saying no."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None
    metadata: ListMeta | None = None


class StatusError(KubeError):
    """The API answered, and the answer is no."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message or status.reason or f"HTTP {status.code}")
        self.status = status

    @property
    def code(self) -> int:
        """The HTTP code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """The reason, one word: NotFound, Conflict, Expired, …"""
        return self.status.reason

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Every single thing that is wrong."""
        details = self.status.details
        return details.causes or () if details is not None else ()

    @property
    def retry_after_s(self) -> float | None:
        """How long the API wants to be left alone, if it said so."""
        details = self.status.details
        wished = details.retry_after_seconds if details is not None else 0
        return float(wished) if wished > 0 else None

    def has_cause(self, reason: str) -> bool:
        """Say whether one of the causes has this reason."""
        return any(cause.reason == reason for cause in self.causes)


class BadRequest(StatusError):
    """The request itself makes no sense to the API."""


class Unauthorized(StatusError):
    """The API does not accept our credentials."""


class Forbidden(StatusError):
    """We may not do this."""


class NotFound(StatusError):
    """There is no such object, namespace or kind."""


class Conflict(StatusError):
    """Another writer was first, or owns the field: read again."""


class AlreadyExists(StatusError):
    """There is an object of that name."""


class Gone(StatusError):
    """The past that was asked for is forgotten: list again."""


class Invalid(StatusError):
    """The object breaks a rule of its kind; `causes` has the fields."""


class TooManyRequests(StatusError):
    """The API is busy, or a disruption budget forbids an eviction for now."""


class ServerError(StatusError):
    """Something is broken on the other side."""


_BY_CODE: dict[int, type[StatusError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}

_decode_status = msgspec.json.Decoder(Status).decode


def status_error(code: int, body: bytes, *, retry_after: str = "") -> StatusError:
    """Make the exception for an answer that is not a success."""
    status = read_status(body)
    if status is None:
        shown = body[:_MOST_SHOWN].decode(errors="replace").strip()
        status = Status(code=code, message=f"HTTP {code}: {shown}" if shown else f"HTTP {code}")
    if (seconds := whole_number(retry_after)) is not None:
        details = status.details or Details()
        wished = msgspec.structs.replace(details, retry_after_seconds=seconds)
        status = msgspec.structs.replace(status, details=wished)
    return error_of(msgspec.structs.replace(status, code=code))


def error_of(status: Status) -> StatusError:
    """Make the exception for a Status, such as the object of an ERROR event."""
    if status.reason == "AlreadyExists":
        return AlreadyExists(status)
    made = _BY_CODE.get(status.code, ServerError if status.code >= 500 else StatusError)
    return made(status)


def read_status(body: Any) -> Status | None:
    """Return a body as a Status, or None if it is none."""
    try:
        return _decode_status(body)
    except msgspec.DecodeError:
        return None
