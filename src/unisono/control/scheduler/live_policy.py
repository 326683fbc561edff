"""The Policy object of the API, which may be edited while the scheduler runs.

At the start the settings were read from the same object, or from files that say more than it (a
Kueue Configuration, a SchedulingPolicy). So an edit changes what the object says, and nothing that
it never said: a section that was in it and is not any more is off, one that was never in it stays.
Which jobs are managed, and what they cost, is settled at the start.
"""

from __future__ import annotations

import msgspec

from unisono.control.actions import Json
from unisono.engine.model import policy as engine
from unisono.kinds.decode import decode
from unisono.kinds.policy.schema import Policy
from unisono.kinds.policy.settings import DEFAULTS, Settings, counting_policy, settings_of

# Sections that a Policy shares with a Configuration, and the fields of the engine's policy.
_SHARED = {
    "fairSharing": "fair_sharing",
    "admissionFairSharing": "admission_fair_sharing",
    "waitForPodsReady": "pods_ready",
}


class OperatorPolicy:
    """Knows what counted at the start, and what the Policy said then."""

    def __init__(self, settings: Settings) -> None:
        """Begin with what was chosen."""
        self._settings = settings
        self._first: Json | None = None
        self._has_seen = False

    def settings_after(self, policies: list[Json]) -> Settings | None:
        """Return what counts now that the Policies are these; None if they say nothing new.

        Of several the first by name counts. One that cannot be read changes nothing.
        """
        chosen = counting_policy(policies)
        if not self._has_seen:
            self._first, self._has_seen = chosen, True
            return None
        if chosen is None:
            return self._settings if self._first is None else self._with(DEFAULTS.policy, {})
        manifest, problems = decode(Policy, chosen, ignore_unknown=True)
        if manifest is None or problems:
            return None
        return self._with(settings_of(None, manifest).policy, chosen)

    def _with(self, policy: engine.Policy, given: Json) -> Settings:
        start, first = self._settings.policy, self._first or {}
        kept = {
            field: getattr(start, field)
            for section, field in _SHARED.items()
            if section not in given and section not in first
        }
        if "resources" not in given and "resources" not in first:
            kept["undeclared"] = start.undeclared
        changed = msgspec.structs.replace(policy, multifactor=start.multifactor, **kept)
        return msgspec.structs.replace(self._settings, policy=changed)
