"""Server-side apply: "these fields shall have these values, and they are mine".

A configuration names only the fields that its manager cares about. Applying it

    1. merges it into the live object (`merging`),
    2. removes what the manager applied last time, not any more, and nobody else owns (`removal`),
    3. refuses if that changes a field that somebody else owns, unless it is forced; then the field
       changes hands,
    4. writes down what the manager owns now (`entries`).

Two managers that apply the same value own it together. kube-api.md §2.7.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from unisono.apiserver.errors import ApiError, bad_request
from unisono.apiserver.patch.compare import object_claims, object_differences
from unisono.apiserver.patch.conflicts import conflict_error
from unisono.apiserver.patch.copying import bounded, copied, equal
from unisono.apiserver.patch.entries import (
    Entries,
    Owned,
    Who,
    all_fields,
    applier,
    read_entries,
    timestamp,
    updater,
    write_entries,
)
from unisono.apiserver.patch.field_set import (
    Tree,
    collapsed,
    difference,
    intersection,
    union,
)
from unisono.apiserver.patch.grain import Grain, Unshareable, grain_of
from unisono.apiserver.patch.last_applied import allowed_conflicts, refreshed
from unisono.apiserver.patch.merging import check_items, merged
from unisono.apiserver.patch.removal import pruned
from unisono.apiserver.patch.skeleton import skeleton
from unisono.apiserver.patch.tracking import Tracked, is_built_in, tracked_fields
from unisono.apiserver.patch.versions import Comparison, Translate
from unisono.kinds.shapes.shape import Shape

Json = dict[str, Any]

# Who owned an object's fields before anybody tracked them.
BEFORE_FIRST_APPLY = "before-first-apply"
# Every configuration names its object, so metadata stays even if nobody owns a part of it.
_NAMED: Tree = {"f:metadata": {"f:name": {}}}


@bounded
def apply(
    live: Json | None,
    config: Json,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    now: float,
    shape: Shape,
    ignored: Collection[str] | None = None,
    translate: Translate | None = None,
) -> Json:
    """Return what the object becomes, with its new managedFields, before defaults are filled in.

    The result shares nothing with what was given. A resourceVersion in the configuration ends up
    in it, so that the caller can compare it with the live one.
    """
    _check_config(config)
    job = _Applying(
        live=copied(live) if live is not None else {},
        config=copied(config),
        who=applier(manager, subresource),
        api_version=api_version,
        grain=grain_of(shape),
        tracked=tracked_fields(api_version, subresource, ignored),
        translate=translate,
    )
    try:
        if live is not None and not job.entries:
            job.assume_owner(timestamp(now))
        return job.run(force=force, time=timestamp(now))
    except Unshareable as problem:
        raise ApiError(422, "Invalid", f"the configuration cannot be applied: {problem}") from None


def _check_config(config: Any) -> None:
    metadata = config.get("metadata", {}) if isinstance(config, dict) else None
    if not isinstance(metadata, dict):
        raise bad_request("an applied configuration is an object with metadata")
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")


class _Applying:
    """One configuration on its way into one object."""

    def __init__(
        self,
        *,
        live: Json,
        config: Json,
        who: Who,
        api_version: str,
        grain: Grain,
        tracked: Tracked,
        translate: Translate | None,
    ) -> None:
        metadata = live.get("metadata") or {}
        self.entries: Entries = read_entries(metadata.pop("managedFields", None), is_trusted=True)
        self._live = live
        self._config = config
        self._who = who
        self._version = api_version
        self._grain = grain
        self._tracked = tracked
        self._translate = translate

    def assume_owner(self, time: str) -> None:
        """Give all fields of an untracked object to somebody, so that none is lost silently."""
        empty = skeleton(self._live, self._version)
        fields, _ = object_differences(self._grain, empty, self._live, self._tracked)
        if fields:
            who = updater(BEFORE_FIRST_APPLY, self._version, self._who.subresource)
            self.entries[who] = Owned(fields, self._version, time)

    def run(self, *, force: bool, time: str) -> Json:
        """Merge, remove, check and record."""
        who, grain, entries = self._who, self._grain, self.entries
        for owned in entries.values():
            if owned.version == self._version:
                owned.fields = collapsed(owned.fields, grain)
        check_items(grain, self._config)
        last = entries.get(who)
        claimed = object_claims(grain, self._config, self._tracked)
        mine = Owned(claimed, self._version, last.time if last is not None else "")
        entries[who] = mine

        compared, result = self._pruned(merged(grain, self._live, self._config), last)
        comparison = Comparison(
            self._live,
            compared,
            grain=grain,
            api_version=self._version,
            tracked=self._tracked,
            translate=self._translate,
        )
        if not force:
            self._check_conflicts(comparison)
        comparison.take_from(entries, but=who)
        if not equal(result, self._live):
            mine.time = time
        if who.manager == "kubectl":
            refreshed(result, self._config)
        listed = write_entries(entries)
        if listed:
            result.setdefault("metadata", {})["managedFields"] = listed
        # The parts that came from the live object are copies already; those of the configuration
        # and of the entries are too.
        return result

    def _pruned(self, result: Json, last: Owned | None) -> tuple[Json, Json]:
        """Take away what was applied last time and not now, in the terms of that time."""
        mine = self.entries[self._who].fields
        if last is None or not difference(last.fields, mine):
            return result, result
        claimed = union(mine, _NAMED)
        owned = union(all_fields(self.entries.values()), _NAMED)
        if last.version == self._version or self._translate is None:
            return pruned(
                self._grain,
                result,
                last=last.fields,
                owned=owned,
                claimed=claimed,
                keeps_empty=not is_built_in(self._version),
            )
        then, config = (self._translate(obj, last.version) for obj in (result, self._config))
        if then is None or config is None:
            return result, result  # what it claimed cannot be found any more
        grain = grain_of(then[1])
        claimed = union(object_claims(grain, config[0], self._tracked), _NAMED)
        owned = union(owned, claimed)
        _, left = pruned(
            grain, then[0], last=last.fields, owned=owned, claimed=claimed, keeps_empty=True
        )
        back = self._translate(left, self._version)
        result = back[0] if back is not None else result
        return result, result

    def _check_conflicts(self, comparison: Comparison) -> None:
        conflicts: list[tuple[Who, Tree]] = []
        for who, owned in self.entries.items():
            found = comparison.in_version(owned.version)
            if who != self._who and found is not None:
                if taken := intersection(owned.fields, found[0]):
                    conflicts.append((who, taken))
        if conflicts and self._who.manager == "kubectl":
            # What `kubectl apply` without --server-side left behind is kubectl's own.
            allowed = allowed_conflicts(self._grain, self._live, self._version)
            rest = [(who, difference(fields, allowed)) for who, fields in conflicts]
            conflicts = [(who, fields) for who, fields in rest if fields]
        if conflicts:
            raise conflict_error(conflicts)
