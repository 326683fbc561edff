"""Filters of every request: Host and Origin, authentication, requests in flight.

A page in a browser can send requests to loopback. It cannot forge the Host header, which stops a
web site that points its own name at 127.0.0.1, and it announces itself by Origin; both are looked
at, so that no web site can talk to the API.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from unisono.apiserver.access.authenticate import AUTHENTICATED, Authenticator
from unisono.apiserver.errors import ApiError
from unisono.apiserver.request import User

LOOPBACK = ("127.0.0.1", "::1", "localhost")
ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))

# Answered without a token, for probes; details are for users (see `reviews`).
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
# Requests at work at the same time; more would only wait for each other. Watches do not count.
MAX_READS = 400
MAX_WRITES = 200
_READS = frozenset({"GET", "HEAD", "OPTIONS"})

# Whether a user may act as another: (user, what: users, groups or serviceaccounts, name).
MayImpersonate = Callable[[User, str, str], bool]


def _masters_may(user: User, _what: str, _name: str) -> bool:
    return "system:masters" in user.groups


class RequestFilter:
    """Checks where a request comes from, and authenticates it."""

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        hosts: Collection[str] = LOOPBACK,
        origins: Collection[str] = (),
        may_impersonate: MayImpersonate = _masters_may,
    ) -> None:
        """Take the users, our own names, and the addresses of pages that may call us."""
        self._authenticator = authenticator
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origins)
        self._may_impersonate = may_impersonate

    def admit(self, method: str, path: str, headers: Mapping[str, str]) -> User:
        """Return the user; raise if it is unknown, or the request comes from a foreign page."""
        host = _host(headers.get("host", ""))
        if host not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            raise ApiError(403, "Forbidden", f'this API is not called "{host}"; it is {known}')
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise ApiError(403, "Forbidden", f"requests from web pages ({origin}) are not accepted")
        user = self._authenticator.user_of(headers)
        if user is not None:
            return self._acting_as(user, headers)
        if path in _OPEN_PATHS and method in _READS and "authorization" not in headers:
            return ANONYMOUS
        raise ApiError(401, "Unauthorized", "Unauthorized")

    def _acting_as(self, user: User, headers: Mapping[str, str]) -> User:
        """Return the user that `kubectl --as` names, if this one may act for them."""
        name = headers.get("impersonate-user", "")
        group = headers.get("impersonate-group", "")
        if not name:
            if group or headers.get("impersonate-uid"):
                raise ApiError(403, "Forbidden", "a group can be impersonated only with a user")
            return user
        groups = tuple(part.strip() for part in group.split(",") if part.strip())
        wanted = [("users", name), *(("groups", each) for each in groups)]
        for what, which in wanted:
            if not self._may_impersonate(user, what, which):
                message = f'{what} "{which}" is forbidden: User "{user.name}" cannot impersonate it'
                raise ApiError(403, "Forbidden", message, name=which, kind=what)
        return User(name=name, groups=tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _host(value: str) -> str:
    """Return a host without its port.

    >>> _host("127.0.0.1:6443"), _host("[::1]:6443"), _host("LocalHost")
    ('127.0.0.1', '::1', 'localhost')
    """
    if value.startswith("["):
        return value[1:].partition("]")[0].lower()
    return value.partition(":")[0].lower()


class InFlightLimit:
    """Counts the requests at work and turns away more than can be."""

    def __init__(self, *, reads: int = MAX_READS, writes: int = MAX_WRITES) -> None:
        """Take how many of each may be at work."""
        self._limits = {"reads": reads, "writes": writes}
        self._flying = {"reads": 0, "writes": 0}

    def enter(self, method: str, *, is_long: bool = False) -> str:
        """Take a place for one request; raise a 429 if there is none. Long ones need none."""
        if is_long:
            return ""
        kind = "reads" if method in _READS else "writes"
        if self._flying[kind] >= self._limits[kind]:
            message = f"too many requests: {self._limits[kind]} {kind} are at work; try again soon"
            raise ApiError(429, "TooManyRequests", message, retry_after=1)
        self._flying[kind] += 1
        return kind

    def leave(self, kind: str) -> None:
        """Give back the place that `enter` gave."""
        if kind:
            self._flying[kind] -= 1
