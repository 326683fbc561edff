"""The seam to access control: which user may do what, and reviews of that.

Without an authoriser (one user, who owns the instance) everything is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.route import Route
from unisono.apiserver.strategy import Json


class AccessControl:
    """Allows everything; `access` has the one that looks at roles."""

    def check_path(self, request: Request) -> None:
        """Refuse an address that is not about objects."""

    def check(self, request: Request, where: Route, verb: str) -> None:
        """Refuse what the caller may not do."""

    def check_object(
        self, user: User, key: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        """Refuse an object that gives away what its author does not have."""

    def answer(self, request: Request, where: Route) -> Json | None:
        """Answer a review (SelfSubjectAccessReview and the like); None if the request is none."""
        return None
