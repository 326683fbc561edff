"""The revisions of StatefulSets and DaemonSets: templates as they were, in ControllerRevisions.

data.spec.template     what `kubectl rollout undo` puts back, as a patch that replaces all of it
revision               counts up; an old template that comes back gets the newest number
name                   follows from the template, and is the pods' label controller-revision-hash
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.control.actions import Action, Create, Delete, Json, Patch, Ref, Steps, Together
from unisono.control.apps import CONTROLLER_REVISION
from unisono.control.jobs.pods import suffix
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View

HASH = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class Revisions:
    """All revisions of a set, oldest first; the last one is that of its present template."""

    all: Sequence[Json]

    @property
    def newest(self) -> Json:
        """The revision of the present template."""
        return self.all[-1]

    def named(self, name: str) -> Json | None:
        """Return a revision by its name."""
        return next((one for one in self.all if one["metadata"]["name"] == name), None)


def template_of(revision: Json, part: str = "template") -> Json:
    """Return the template that a revision keeps; `part` is its field in the spec."""
    found: Json = ((revision.get("data") or {}).get("spec") or {}).get(part) or {}
    return {key: value for key, value in found.items() if key != "$patch"}


def revision_of(pod: Json) -> str:
    """Return the name of the revision that a pod was made from."""
    return str((pod["metadata"].get("labels") or {}).get(HASH, ""))


def current(owner: Json, view: View, part: str = "template") -> Generator[Action, Any, Revisions]:
    """Return the revisions, with one of the present template, made or brought forward."""
    uid = owner["metadata"]["uid"]
    found = sorted(
        view.owned(CONTROLLER_REVISION, uid),
        key=lambda one: (one.get("revision", 0), one["metadata"]["name"]),
    )
    template = owner["spec"].get(part) or {}
    newest = next((one for one in reversed(found) if template_of(one, part) == template), None)
    last = found[-1].get("revision", 0) if found else 0
    if newest is None:
        newest = yield Create(_revision(owner, part, last + 1))
        return Revisions([*found, newest])
    if newest is not found[-1]:
        before = newest
        newest = yield Patch(Ref.to(newest), {"revision": last + 1})
        found = [one for one in found if one is not before]
        return Revisions([*found, newest])
    return Revisions(found)


def _revision(owner: Json, part: str, number: int) -> Json:
    metadata, template = owner["metadata"], owner["spec"].get(part) or {}
    text = json.dumps(template, sort_keys=True)
    name = f"{metadata['name'][:200]}-{suffix(metadata['uid'], text)}{suffix(text)}"
    labels = ((template.get("metadata") or {}).get("labels")) or {}
    return {
        "apiVersion": CONTROLLER_REVISION.api_version,
        "kind": CONTROLLER_REVISION.kind,
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {**labels, HASH: name.rpartition("-")[2]},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": {"spec": {part: {**template, "$patch": "replace"}}},
        "revision": number,
    }


def forget_old(owner: Json, revisions: Revisions, used: Collection[str]) -> Steps:
    """Delete the oldest revisions beyond the history limit that no pod is of."""
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    unused: Iterable[Json] = (
        one
        for one in revisions.all
        if one["metadata"]["name"] not in used and one is not revisions.newest
    )
    idle = list(unused)
    surplus = idle[: max(0, len(idle) - limit)]
    if surplus:
        yield Together([Delete(Ref.to(one)) for one in surplus])
