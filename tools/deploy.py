"""Write `deploy/`: the manifests of an installation as files for kustomize (`make deploy`).

`unisono install` applies the same objects from the same functions; a test compares these files with
them. Definitions are written as compact JSON, one directory per group: they are large, nobody reads
them, and whoever has a group from upstream leaves its directory out.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tools import ledger_component
from unisono import __version__
from unisono.cli.manifests import (
    ALL_ADMISSION,
    WEBHOOK_ARGUMENTS,
    WEBHOOK_PORT,
    Wanted,
    admission,
    definitions,
    flows,
    objects,
    runtimes,
    service_monitor,
)
from unisono.cli.objects import PLAIN
from unisono.cli.webhook.configuration import KINDS

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1] / "deploy"
# Written by hand; everything else in there is made here.
KEPT = ("README.md",)

_HEADER = "# Made by `make deploy`; edit src/unisono/cli/manifests.py instead.\n"
_WANTED = Wanted(namespace="unisono-system")
_FILES = {
    "Namespace": "namespace",
    "ServiceAccount": "rbac",
    "ClusterRole": "rbac",
    "ClusterRoleBinding": "rbac",
    "Role": "rbac",
    "RoleBinding": "rbac",
    "NetworkPolicy": "network-policy",
    "PodDisruptionBudget": "disruption-budget",
    "Service": "service",
    "Deployment": "deployment",
}


def files() -> dict[str, str]:
    """Return every file by its path below `deploy/`."""
    made: dict[str, str] = {}
    base: dict[str, list[Json]] = {}
    for one in objects(_WANTED):
        base.setdefault(f"{_FILES[one['kind']]}.yaml", []).append(one)
    _directory(made, "base", {name: _yaml(some) for name, some in base.items()})
    groups: dict[str, list[Json]] = {}
    for one in definitions():
        groups.setdefault(one["spec"]["group"], []).append(one)
    for group, some in groups.items():
        texts = {f"{one['spec']['names']['plural']}.json": _json(one) for one in some}
        _directory(made, f"crds/{group}", texts)
    _kustomize(made, "crds", list(groups))
    rules: dict[str, list[Json]] = {}
    for one in admission(ALL_ADMISSION):
        rules.setdefault(one["kind"].partition("Admission")[0].lower(), []).append(one)
    for name, some in rules.items():
        _directory(made, f"admission/{name}", {"policies.yaml": _yaml(some)})
    _directory(made, "flows", {"flow-schemas.yaml": _yaml(flows(_WANTED))})
    _directory(made, "runtimes", {"runtimes.yaml": _yaml(runtimes())})
    monitor = {"service-monitor.yaml": _yaml([service_monitor(_WANTED)])}
    _directory(made, "components/service-monitor", monitor, is_component=True)
    ledger = ledger_component.resources(_WANTED)
    _directory(
        made,
        "components/ledger",
        {name: _yaml([one]) for name, one in ledger.items()},
        is_component=True,
        patches=[{"path": "deployment.yaml"}],
    )
    made["components/ledger/deployment.yaml"] = _yaml([ledger_component.patch(_WANTED)])
    _webhook(made)
    image, tag = _WANTED.image.rsplit(":", 1)
    _kustomize(
        made,
        "",
        ["base", "crds", "flows", "admission/validating", "admission/mutating"],
        images=[{"name": image, "newTag": tag}],
    )
    overlays = {
        "without-crds": ["base", "flows", "admission/validating", "admission/mutating"],
        "before-1.36": ["base", "crds", "flows", "admission/validating"],
    }
    for name, parts in overlays.items():
        _kustomize(made, f"overlays/{name}", [f"../../{part}" for part in parts])
    webhook = ["../../components/webhook"]
    _kustomize(made, "overlays/webhook", ["../../base", "../../crds"], components=webhook)
    return made


def _webhook(made: dict[str, str]) -> None:
    """Add what webhooks need besides the base, and the change of its Deployment."""
    wanted = replace(_WANTED, webhooks=frozenset(KINDS))
    base = {(one["kind"], one["metadata"]["name"]) for one in objects(_WANTED)}
    more = [one for one in objects(wanted) if (one["kind"], one["metadata"]["name"]) not in base]
    path = "components/webhook"
    made[f"{path}/webhook.yaml"] = _yaml(more)
    # Added to whatever is there, so that it goes together with other components.
    container = "/spec/template/spec/containers/0"
    changes = [
        {"op": "add", "path": f"{container}/{field}/-", "value": value}
        for field, added in (("args", WEBHOOK_ARGUMENTS), ("ports", (WEBHOOK_PORT,)))
        for value in added
    ]
    made[f"{path}/deployment.yaml"] = _yaml([changes])
    target = {"kind": "Deployment", "name": "unisono"}
    patches = [{"path": "deployment.yaml", "target": target}]
    _kustomize(made, path, ["webhook.yaml"], is_component=True, patches=patches)


def _directory(
    made: dict[str, str],
    path: str,
    texts: Mapping[str, str],
    *,
    is_component: bool = False,
    **more: Any,
) -> None:
    """Add files and the kustomization that names them."""
    made.update({f"{path}/{name}": text for name, text in texts.items()})
    _kustomize(made, path, list(texts), is_component=is_component, **more)


def _kustomize(
    made: dict[str, str],
    path: str,
    resources: Sequence[str],
    *,
    is_component: bool = False,
    **more: Any,
) -> None:
    version, kind = ("v1alpha1", "Component") if is_component else ("v1beta1", "Kustomization")
    written = {
        "apiVersion": f"kustomize.config.k8s.io/{version}",
        "kind": kind,
        "resources": [*resources],
        **more,
    }
    made["/".join(filter(None, (path, "kustomization.yaml")))] = _yaml([written])


def _yaml(some: Iterable[Json | Sequence[Json]]) -> str:
    out = io.StringIO()
    out.write(_HEADER)
    for number, one in enumerate(some):
        out.write("---\n" if number else "")
        yaml.dump(one, out, Dumper=PLAIN, sort_keys=False, default_flow_style=False, width=100)
    return out.getvalue()


def _json(one: Json) -> str:
    return json.dumps(one, separators=(",", ":")) + "\n"


def main() -> int:
    """Write them all anew."""
    for found in sorted(ROOT.glob("*")):
        if found.is_dir():
            shutil.rmtree(found)
        elif found.name not in KEPT:
            found.unlink()
    for path, text in files().items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"deploy: version {__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
