"""Server-side apply: "these fields shall have these values, and they are mine".

A configuration names only the fields that its manager cares about. Applying it

    1. merges it into the live object,
    2. removes what the manager applied last time, not any more, and no other manager owns,
    3. refuses if that changes a field that another manager owns, unless it is forced; then the
       field changes hands,
    4. writes down what the manager owns now.

Two managers that apply the same value own it together. kube-api.md §2.7.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from unisono.apiserver.errors import ApiError, Cause, bad_request
from unisono.apiserver.objects import Json, bounded, copied, equal
from unisono.apiserver.patch.compare import (
    Tracked,
    claims,
    differences,
    is_built_in,
    object_claims,
    object_differences,
    skeleton,
    tracked_fields,
)
from unisono.apiserver.patch.field_set import (
    Tree,
    collapsed,
    difference,
    holds,
    intersection,
    paths_of,
    union,
    with_parents,
)
from unisono.apiserver.patch.managed_fields import (
    Comparison,
    Entries,
    ManagerKey,
    Owned,
    Translate,
    all_fields,
    applier,
    read_entries,
    timestamp,
    updater,
    write_entries,
)
from unisono.apiserver.patch.merge_schema import (
    FIELDS,
    LEAF,
    MergeSchema,
    Unshareable,
    merge_schema_of,
)
from unisono.kinds.shapes.shape import Shape

# The manager of fields that were written before ownership was tracked.
BEFORE_FIRST_APPLY = "before-first-apply"
# Every configuration names its object, so metadata stays even if no part of it is owned.
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
        manager_key=applier(manager, subresource),
        api_version=api_version,
        merge_schema=merge_schema_of(shape),
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
        manager_key: ManagerKey,
        api_version: str,
        merge_schema: MergeSchema,
        tracked: Tracked,
        translate: Translate | None,
    ) -> None:
        metadata = live.get("metadata") or {}
        self.entries: Entries = read_entries(metadata.pop("managedFields", None), is_trusted=True)
        self._live = live
        self._config = config
        self._manager_key = manager_key
        self._version = api_version
        self._merge_schema = merge_schema
        self._tracked = tracked
        self._translate = translate

    def assume_owner(self, time: str) -> None:
        """Give all fields of an untracked object to one manager, so that none is lost silently."""
        empty = skeleton(self._live, self._version)
        fields, _ = object_differences(self._merge_schema, empty, self._live, self._tracked)
        if fields:
            manager_key = updater(BEFORE_FIRST_APPLY, self._version, self._manager_key.subresource)
            self.entries[manager_key] = Owned(fields, self._version, time)

    def run(self, *, force: bool, time: str) -> Json:
        """Merge, remove, check and record."""
        manager_key, merge_schema, entries = self._manager_key, self._merge_schema, self.entries
        for owned in entries.values():
            if owned.version == self._version:
                owned.fields = collapsed(owned.fields, merge_schema)
        check_items(merge_schema, self._config)
        last = entries.get(manager_key)
        claimed = object_claims(merge_schema, self._config, self._tracked)
        mine = Owned(claimed, self._version, last.time if last is not None else "")
        entries[manager_key] = mine

        compared, result = self._pruned(merged(merge_schema, self._live, self._config), last)
        comparison = Comparison(
            self._live,
            compared,
            merge_schema=merge_schema,
            api_version=self._version,
            tracked=self._tracked,
            translate=self._translate,
        )
        if not force:
            self._check_conflicts(comparison)
        comparison.take_from(entries, but=manager_key)
        if not equal(result, self._live):
            mine.time = time
        if manager_key.manager == "kubectl":
            refreshed(result, self._config)
        listed = write_entries(entries)
        if listed:
            result.setdefault("metadata", {})["managedFields"] = listed
        # The parts that came from the live object are copies already; those of the configuration
        # and of the entries are too.
        return result

    def _pruned(self, result: Json, last: Owned | None) -> tuple[Json, Json]:
        """Take away what was applied last time and not now, in the terms of that time."""
        mine = self.entries[self._manager_key].fields
        if last is None or not difference(last.fields, mine):
            return result, result
        claimed = union(mine, _NAMED)
        owned = union(all_fields(self.entries.values()), _NAMED)
        if last.version == self._version or self._translate is None:
            return _pruned(
                self._merge_schema,
                result,
                last=last.fields,
                owned=owned,
                claimed=claimed,
                keeps_empty=not is_built_in(self._version),
            )
        then, config = (self._translate(obj, last.version) for obj in (result, self._config))
        if then is None or config is None:
            return result, result  # what it claimed cannot be found any more
        merge_schema = merge_schema_of(then[1])
        claimed = union(object_claims(merge_schema, config[0], self._tracked), _NAMED)
        owned = union(owned, claimed)
        _, left = _pruned(
            merge_schema, then[0], last=last.fields, owned=owned, claimed=claimed, keeps_empty=True
        )
        back = self._translate(left, self._version)
        result = back[0] if back is not None else result
        return result, result

    def _check_conflicts(self, comparison: Comparison) -> None:
        conflicts: list[tuple[ManagerKey, Tree]] = []
        for manager_key, owned in self.entries.items():
            found = comparison.in_version(owned.version)
            if manager_key != self._manager_key and found is not None:
                if taken := intersection(owned.fields, found[0]):
                    conflicts.append((manager_key, taken))
        if conflicts and self._manager_key.manager == "kubectl":
            # What `kubectl apply` without --server-side left behind is kubectl's own.
            allowed = allowed_conflicts(self._merge_schema, self._live, self._version)
            rest = [(manager_key, difference(fields, allowed)) for manager_key, fields in conflicts]
            conflicts = [(manager_key, fields) for manager_key, fields in rest if fields]
        if conflicts:
            raise conflict_error(conflicts)


# ---- conflicts: 409 with every field and its owner -----------------------------------------------


# A refusal lists every conflict, but an answer must stay small enough to send.
MAX_CAUSES = 1000


def conflict_error(conflicts: Sequence[tuple[ManagerKey, Tree]]) -> ApiError:
    """Return the refusal for fields that others own."""
    listed = sorted(
        (manager_key.described, path)
        for manager_key, fields in conflicts
        for path in paths_of(fields)
    )
    if len(listed) == 1:
        manager_key, path = listed[0]
        message = f"Apply failed with 1 conflict: conflict with {manager_key}: {path}"
    else:
        lines = []
        for number, (manager_key, path) in enumerate(listed):
            if number == 0 or listed[number - 1][0] != manager_key:
                lines.append(f"conflicts with {manager_key}:")
            lines.append(f"- {path}")
        text = "\n".join(lines[:MAX_CAUSES])
        message = f"Apply failed with {len(listed)} conflicts: {text}"
    causes = [
        Cause("FieldManagerConflict", f"conflict with {manager_key}", path)
        for manager_key, path in listed[:MAX_CAUSES]
    ]
    return ApiError(409, "Conflict", message, causes=causes)


# ---- what applying a configuration makes of a live object, before anything is taken away ---------
#
# The configuration wins where both have a value; lists with keys and sets are merged item by item.


def merged(merge_schema: MergeSchema, live: Any, config: Any) -> Any:
    """Return the live value with the configuration in it; may share parts with both."""
    if merge_schema.kind == LEAF:
        return config
    container = dict if merge_schema.kind == FIELDS else list
    fit = all(value is None or isinstance(value, container) for value in (live, config))
    if not fit or (not live and not config):
        return config
    if merge_schema.kind == FIELDS:
        # A null where an object was does not remove what others put into the object.
        result = dict(live or {})
        for name, value in (config or {}).items():
            if name in result:
                result[name] = merged(merge_schema.field(name)[1], result[name], value)
            else:
                result[name] = value
        return result
    return _merged_items(merge_schema, live or [], config or [])


def _merged_items(merge_schema: MergeSchema, live: list[Any], config: list[Any]) -> list[Any]:
    """Merge two lists: the items of the configuration in its order, the live ones around them."""
    wanted = {merge_schema.text(item): item for item in config}
    there: dict[str, Any] = {}
    live_texts = [merge_schema.text(item) for item in live]
    for text, item in zip(live_texts, live, strict=True):
        # Of an item that is there twice nothing is merged: the configuration's replaces both.
        there[text] = _TWICE if text in there else item

    result: list[Any] = []

    def take(text: str) -> None:
        before = there.get(text, _TWICE)
        item = wanted[text]
        result.append(item if before is _TWICE else merged(merge_schema.items, before, item))

    order = list(wanted)
    shared = [text for text in order if text in there]
    next_wanted = next_shared = 0
    for text, item in zip(live_texts, live, strict=True):
        if text not in wanted:
            result.append(item)
        elif next_shared < len(shared) and text == shared[next_shared]:
            # The configuration's own items go in front of the shared one that follows them.
            while order[next_wanted] != text:
                take(order[next_wanted])
                next_wanted += 1
            take(text)
            next_wanted += 1
            next_shared += 1
        # Any other shared item is taken when its turn in the configuration comes.
    for text in order[next_wanted:]:
        take(text)
    return result


_TWICE: Any = object()


def check_items(merge_schema: MergeSchema, config: Any) -> None:
    """Refuse a configuration that has two items with the same key in one list."""
    if merge_schema.kind == FIELDS and isinstance(config, dict):
        for name, value in config.items():
            if isinstance(value, (dict, list)):
                check_items(merge_schema.field(name)[1], value)
    elif merge_schema.kind not in (FIELDS, LEAF) and isinstance(config, list):
        seen = set()
        for item in config:
            text = merge_schema.text(item)
            if text in seen:
                raise Unshareable(f"two items of a list have the key {text[2:]}")
            seen.add(text)
            check_items(merge_schema.items, item)


# ---- from client-side to server-side apply: kubectl's note of what it applied last ---------------
#
# `kubectl apply` without --server-side keeps the whole configuration in an annotation. When kubectl
# then applies on the server, the fields in that note which did not change since are its own,
# whichever manager is listed, and the note is kept up to date for the way back.


NOTE = "kubectl.kubernetes.io/last-applied-configuration"
# All annotations of an object together may not be larger; without room the note is dropped.
MAX_ANNOTATION_BYTES = 262_144


def allowed_conflicts(merge_schema: MergeSchema, live: Json, api_version: str) -> Tree:
    """Return the fields that the note names and that still have the values it gave them."""
    note = _annotations(live).get(NOTE)
    try:
        config = orjson.loads(note) if isinstance(note, str) else None
    except ValueError:
        return {}
    if not isinstance(config, dict) or config.get("apiVersion") != api_version:
        return {}
    try:
        claimed = claims(merge_schema, config)
        came, went = differences(merge_schema, config, live) if config != live else (None, None)
    except Unshareable:
        return {}
    return difference(difference(claimed, came or {}), went or {})


def refreshed(result: Json, config: Json) -> None:
    """Bring the note of an object up to date, if it has one."""
    annotations = _annotations(result)
    if NOTE not in annotations:
        return
    clean = copied(config)
    if isinstance(clean.get("metadata"), dict):
        _annotations(clean).pop(NOTE, None)
    annotations[NOTE] = orjson.dumps(clean, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    size = sum(len(key) + len(str(value).encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATION_BYTES:
        del annotations[NOTE]


def _annotations(obj: Json) -> Json:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


# ---- removing what is no longer applied ----------------------------------------------------------
#
# Taking away what a manager no longer applies and no other manager owns.


def _pruned(
    merge_schema: MergeSchema,
    value: Any,
    *,
    last: Tree,
    owned: Tree,
    claimed: Tree,
    keeps_empty: bool,
) -> tuple[Any, Any]:
    """Return a merged object without what only the last configuration claimed.

    `last` is what the manager claimed when it applied before, `claimed` what it claims now, and
    `owned` what any manager owns now. `keeps_empty` is false for built-in kinds, which on a real
    server lose what becomes empty even if the configuration has it so. The first result is for
    comparing, the second for storing.
    """
    gone = _gone_since(merge_schema, value, last, owned)
    # An object with nothing but empty lists in it counts as nothing; it stays nevertheless if the
    # configuration has it.
    gone = difference(gone, with_parents(claimed, merge_schema))
    if not gone:
        return value, value
    return _removed(merge_schema, value, gone) or {}, _remainder(
        merge_schema, value, gone, claimed if keeps_empty else {}
    )


def _gone_since(merge_schema: MergeSchema, value: Any, last: Tree, owned: Tree) -> Tree:
    """Return the paths to take out of a merged object.

    What was never claimed (a default below a removed item, say) goes with the item that it
    belongs to, and stays otherwise.
    """
    last = with_parents(last, merge_schema)
    owned = with_parents(owned, merge_schema)
    there = with_parents(claims(merge_schema, value), merge_schema)
    without_last = with_parents(
        claims(merge_schema, _removed(merge_schema, value, last)), merge_schema
    )
    without_unowned = _removed(merge_schema, value, difference(there, union(without_last, owned)))
    gone = difference(there, with_parents(claims(merge_schema, without_unowned), merge_schema))
    return intersection(gone, last)


def _removed(merge_schema: MergeSchema, value: Any, paths: Tree) -> Any:
    """Return a value without the paths and all below them, for working out sets.

    What becomes empty becomes null: its own path may be owned even if nothing is below it.
    """
    if merge_schema.kind == FIELDS and isinstance(value, dict):
        return _fields_left(merge_schema, value, paths, None) or None
    if merge_schema.kind not in (FIELDS, LEAF) and isinstance(value, list):
        return _items_left(merge_schema, value, paths, None) or None
    # Below a value that is owned as a whole there is nothing to take away.
    return None if isinstance(value, (dict, list)) else value


def _remainder(merge_schema: MergeSchema, value: Any, paths: Tree, claimed: Tree) -> Any:
    """Return a value without the paths and all below them, as it is to be stored.

    A declared field that becomes empty is left out, because many kinds refuse it empty, unless
    the configuration itself says that it shall be there; what stands in a map or a list stays.
    """
    if merge_schema.kind == FIELDS and isinstance(value, dict):
        return _fields_left(merge_schema, value, paths, claimed)
    if merge_schema.kind not in (FIELDS, LEAF) and isinstance(value, list):
        return _items_left(merge_schema, value, paths, claimed)
    return value


def _fields_left(merge_schema: MergeSchema, value: Json, paths: Tree, claimed: Tree | None) -> Json:
    fields = {}
    for name, child in value.items():
        text, below, is_declared = merge_schema.field(name)
        node = paths.get(text)
        if node is None:
            fields[name] = child
        elif holds(node):
            continue
        elif claimed is None:
            fields[name] = _removed(below, child, node)
        else:
            claim = claimed.get(text)
            rest = _remainder(below, child, node, claim or {})
            if not is_declared or rest not in ({}, []) or holds(claim):
                fields[name] = rest
    return fields


def _items_left(
    merge_schema: MergeSchema, value: list[Any], paths: Tree, claimed: Tree | None
) -> list[Any]:
    items = []
    for item in value:
        text = merge_schema.text(item)
        node = paths.get(text)
        if node is None:
            items.append(item)
        elif holds(node):
            continue
        elif claimed is None:
            items.append(_removed(merge_schema.items, item, node))
        else:
            items.append(_remainder(merge_schema.items, item, node, claimed.get(text) or {}))
    return items
