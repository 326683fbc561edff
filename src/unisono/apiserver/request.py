"""A request of the API, over HTTP or from a caller in the same process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

# What an address means is worked out in `rest.route`; here are only its parts.


# Members of this group may do everything, as in Kubernetes.
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user of a request, as authentication found out."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    system_uid: int = 0  # of their process pods on this machine; 0: not given


class Origin(Enum):
    """Where a request comes from, which decides how much of it is looked at (`rest.writer`)."""

    CLIENT = "over HTTP, or to be treated so: everything is checked"
    CONTROLLER = "a request of a controller in this process: a status is taken as it is"
    DIRECT = "an object that a controller in this process made (`rest.direct_writes`)"


@dataclass(slots=True, kw_only=True)
class Request:
    """One call of the API; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    command: tuple[str, ...] = ()  # that is to run in a container
    user: User
    warnings: list[str] = field(default_factory=list)  # sent back as `Warning` headers
    has_no_duplicates: bool = False  # known already: no key of the body stands twice
    most_values: int | None = None  # known already: the body has no more fields and items
    origin: Origin = Origin.CLIENT

    def flag(self, name: str) -> bool:
        """Return a boolean of the query string."""
        return self.query.get(name, "").lower() in ("true", "1")
