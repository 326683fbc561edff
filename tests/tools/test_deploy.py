"""The files in deploy/ are what `unisono install` applies."""

from __future__ import annotations

import json
import posixpath
from typing import Any

import yaml

from tools.deploy import KEPT, ROOT, files
from unisono.cli.install.manifests import (
    ALL_ADMISSION,
    Wanted,
    admission,
    definitions,
    flows,
    objects,
)


def test_the_files_are_those_that_would_be_made_now() -> None:
    found = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in ROOT.rglob("*")
        if path.is_file() and path.name not in KEPT
    }
    assert found == files(), "run: make deploy"


def test_a_whole_installation_is_reached_from_the_top() -> None:
    ours = Wanted(namespace="unisono-system")
    assert _built("") == _sorted(ours)


def test_the_overlay_for_queues_alone_is_what_install_brings_without_operators() -> None:
    assert _built("overlays/queue-only") == _sorted(
        Wanted(namespace="unisono-system", operators=())
    )


def _sorted(ours: Wanted) -> list[str]:
    wanted = [*objects(ours), *flows(ours), *definitions(), *admission(ALL_ADMISSION)]
    return sorted(map(_key, wanted))


def _built(directory: str) -> list[str]:
    """Return what kustomize would make of a directory."""
    return sorted(map(_key, _reached(files(), directory)))


def _reached(texts: dict[str, str], directory: str) -> list[dict[str, Any]]:
    path = posixpath.normpath(posixpath.join(directory, "kustomization.yaml"))
    written = yaml.safe_load(texts[path])
    found: list[dict[str, Any]] = []
    for name in written["resources"]:
        below = posixpath.normpath(posixpath.join(directory, name))
        if below in texts:
            parse = json.loads if below.endswith(".json") else yaml.safe_load_all
            some = parse(texts[below])
            found += [some] if isinstance(some, dict) else list(some)
        else:
            found += _reached(texts, below)
    for name in written.get("components", ()):
        below = posixpath.normpath(posixpath.join(directory, name))
        found += _reached(texts, below)
        for patch in yaml.safe_load(texts[f"{below}/kustomization.yaml"]).get("patches", ()):
            _patch(found, patch["target"], yaml.safe_load(texts[f"{below}/{patch['path']}"]))
    return found


def _patch(found: list[dict[str, Any]], target: dict[str, str], changes: Any) -> None:
    """Add to the lists that a component of an operator adds to."""
    (obj,) = (one for one in found if (one["kind"], one["metadata"]["name"]) == (*target.values(),))
    for change in changes:
        assert change["op"] == "add"
        *above, last = change["path"].strip("/").split("/")
        assert last == "-"
        place: Any = obj
        for name in above:
            place = place[int(name)] if isinstance(place, list) else place[name]
        place.append(change["value"])


def _key(obj: dict[str, object]) -> str:
    return json.dumps(obj, sort_keys=True)
