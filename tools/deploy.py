"""Write `deploy/`: the manifests of an installation as files for kustomize (`make deploy`).

`unisono install` applies the same objects from the same functions; a test compares these files with
them. The base only queues; each operator and each provisioner of machines is a component with its
own role. Definitions are written as compact JSON, one directory per group: they are large and not
meant for reading, and a cluster with upstream's definitions of a group leaves its directory out.
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
from unisono.cli.install.manifests import (
    ALL_ADMISSION,
    BEHIND_PROXY_ARGUMENTS,
    HOME,
    VISIBILITY_ARGUMENTS,
    VISIBILITY_PORT,
    WEB_TLS_ARGUMENTS,
    WEBHOOK_ARGUMENTS,
    WEBHOOK_PORT,
    Wanted,
    admission,
    definitions,
    flows,
    objects,
    part_arguments,
    roles,
    runtimes,
    service_monitor,
    visibility_objects,
    web_policy,
)
from unisono.cli.objects import PLAIN
from unisono.control.assembly import OPERATORS
from unisono.control.rbac import MACHINES
from unisono.kube.form import Json
from unisono.runtime.webhook.configuration import KINDS

ROOT = Path(__file__).resolve().parents[1] / "deploy"
# Written by hand; everything else in there is made here.
KEPT = ("README.md",)

_HEADER = "# Made by `make deploy`; edit src/unisono/cli/install/manifests.py instead.\n"
_WANTED = Wanted(namespace=HOME, operators=())
# Values of the examples; other names need a patch.
_PROXY = "ingress-nginx"
_WEB_TLS = "unisono-web-tls"
_CONTAINER = "/spec/template/spec/containers/0"
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
    texts = {name: _yaml([one]) for name, one in ledger.items()}
    texts["volume.yaml"] = _yaml([ledger_component.patch(_WANTED)])
    _component(made, "ledger", texts, _told(ledger_component.ARGUMENTS), merged=["volume.yaml"])
    for part in (*OPERATORS, *MACHINES):
        _component(
            made,
            _path_of(part),
            {"role.yaml": _yaml(roles(_WANTED, part))},
            _told(part_arguments(part)),
        )
    _web(made)
    changes = [*_told(VISIBILITY_ARGUMENTS), _added("ports", VISIBILITY_PORT)]
    answered = {"visibility.yaml": _yaml(visibility_objects(_WANTED))}
    _component(made, "visibility", answered, changes)
    _webhook(made)
    image, tag = _WANTED.image.rsplit(":", 1)
    whole = ["base", "crds", "flows", "admission/validating", "admission/mutating"]
    operators = [f"components/{_path_of(one)}" for one in OPERATORS]
    _kustomize(
        made,
        "",
        whole,
        components=operators,
        images=[{"name": image, "newTag": tag}],
    )
    overlays: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
        "without-crds": ([one for one in whole if one != "crds"], operators),
        "before-1.36": ([one for one in whole if one != "admission/mutating"], operators),
        "webhook": (["base", "crds"], [*operators, "components/webhook"]),
        "queue-only": (whole, []),
    }
    for name, (parts, components) in overlays.items():
        more: Json = {"components": [f"../../{one}" for one in components]} if components else {}
        _kustomize(made, f"overlays/{name}", [f"../../{one}" for one in parts], **more)
    return made


def _path_of(part: str) -> str:
    return f"operators/{part}" if part in OPERATORS else f"machines/{part}"


def _told(arguments: Iterable[str]) -> list[Json]:
    """Return the change of a Deployment that tells its replicas something more."""
    return [_added("args", one) for one in arguments]


def _added(field: str, value: object) -> Json:
    """Return what adds to a list of the container, so that several components go together."""
    return {"op": "add", "path": f"{_CONTAINER}/{field}/-", "value": value}


def _component(
    made: dict[str, str],
    name: str,
    texts: Mapping[str, str],
    changes: Sequence[Json],
    merged: Sequence[str] = (),
) -> None:
    """Add a component: files of its own, and a change of the Deployment.

    Those of `merged` are parts of objects that are there already.
    """
    path = f"components/{name}"
    target = {"kind": "Deployment", "name": "unisono"}
    patches = [{"path": "deployment.yaml", "target": target}, *({"path": one} for one in merged)]
    made.update({f"{path}/{name}": text for name, text in texts.items()})
    own = [one for one in texts if one not in merged]
    _kustomize(made, path, own, is_component=True, patches=patches)
    made[f"{path}/deployment.yaml"] = _yaml([changes])


def _web(made: dict[str, str]) -> None:
    """Add the two ways to have the web page reached: behind a proxy, and over TLS of its own."""
    proxied = web_policy(replace(_WANTED, web_from=_PROXY))
    texts = {"network-policy.yaml": _yaml([proxied])}
    _component(made, "web-proxy", texts, _told(BEHIND_PROXY_ARGUMENTS))
    wanted = replace(_WANTED, web_tls=_WEB_TLS)
    served = {(one["kind"], one["metadata"]["name"]): one for one in objects(wanted)}
    deployment, service = served["Deployment", "unisono"], served["Service", "unisono-web"]
    pod = deployment["spec"]["template"]["spec"]
    mounted = {"name": "controller", "volumeMounts": pod["containers"][0]["volumeMounts"]}
    about = {"volumes": pod["volumes"], "containers": [mounted]}
    texts = {
        "network-policy.yaml": _yaml([web_policy(wanted)]),
        "volume.yaml": _yaml([{**_named(deployment), "spec": {"template": {"spec": about}}}]),
        "service.yaml": _yaml([{**_named(service), "spec": {"ports": _replaced(service)}}]),
    }
    merged = ["volume.yaml", "service.yaml"]
    _component(made, "web-tls", texts, _told(WEB_TLS_ARGUMENTS), merged)


def _named(obj: Json) -> Json:
    metadata = {key: obj["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _replaced(service: Json) -> list[Json]:
    """Return the ports of a Service instead of those that it has: their numbers are their keys."""
    return [{"$patch": "replace"}, *service["spec"]["ports"]]


def _webhook(made: dict[str, str]) -> None:
    """Add what webhooks need besides the base, and the change of its Deployment."""
    wanted = replace(_WANTED, webhooks=frozenset(KINDS))
    base = {(one["kind"], one["metadata"]["name"]) for one in objects(_WANTED)}
    more = [one for one in objects(wanted) if (one["kind"], one["metadata"]["name"]) not in base]
    changes = [*_told(WEBHOOK_ARGUMENTS), _added("ports", WEBHOOK_PORT)]
    _component(made, "webhook", {"webhook.yaml": _yaml(more)}, changes)


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
