"""The files in deploy/ are what `unisono install` applies."""

from __future__ import annotations

import json

import yaml

from tools.deploy import KEPT, ROOT, files
from unisono.cli.manifests import ALL_ADMISSION, Wanted, admission, definitions, flows, objects


def test_the_files_are_those_that_would_be_made_now() -> None:
    found = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in ROOT.rglob("*")
        if path.is_file() and path.name not in KEPT
    }
    assert found == files(), "run: make deploy"


def test_a_whole_installation_is_reached_from_the_top() -> None:
    texts = files()
    reached = list(_reached(texts, ""))
    ours = Wanted(namespace="unisono-system")
    wanted = [
        *objects(ours),
        *flows(ours),
        *definitions(),
        *admission(ALL_ADMISSION),
    ]
    assert sorted(map(_key, reached)) == sorted(map(_key, wanted))


def _reached(texts: dict[str, str], directory: str) -> list[dict[str, object]]:
    path = "/".join(filter(None, (directory, "kustomization.yaml")))
    found = []
    for name in yaml.safe_load(texts[path])["resources"]:
        below = "/".join(filter(None, (directory, name)))
        if below in texts:
            parse = json.loads if below.endswith(".json") else yaml.safe_load_all
            some = parse(texts[below])
            found += [some] if isinstance(some, dict) else list(some)
        else:
            found += _reached(texts, below)
    return found


def _key(obj: dict[str, object]) -> str:
    return json.dumps(obj, sort_keys=True)
