"""Grafana dashboards: made by `tools/dashboards`, shipped as data.

As files for Grafana's provisioning, and as ConfigMaps for its sidecar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml

FOLDER = "Unisono"
# The label by which Grafana's sidecar finds dashboards.
SIDECAR_LABEL = "grafana_dashboard"


def dashboards() -> dict[str, dict[str, Any]]:
    """Return every dashboard, by the name of its file."""
    folder = resources.files("unisono.monitor.dashboards") / "data"
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".json"))
    return {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in names}


def provisioned() -> Mapping[str, str]:
    """Return the dashboards, and what Grafana needs to find them and its data."""
    found = {name: json.dumps(one, indent=1) + "\n" for name, one in dashboards().items()}
    provider = {
        "apiVersion": 1,
        "providers": [
            {
                "name": "unisono",
                "folder": FOLDER,
                "type": "file",
                "options": {"path": "/etc/grafana/dashboards/unisono"},
            }
        ],
    }
    source = {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Prometheus",
                "type": "prometheus",
                "uid": "prometheus",
                "url": "http://127.0.0.1:9090",
                "access": "proxy",
                "isDefault": True,
            }
        ],
    }
    found["provisioning-dashboards.yaml"] = yaml.safe_dump(provider, sort_keys=False)
    found["provisioning-datasources.yaml"] = yaml.safe_dump(source, sort_keys=False)
    return found


def config_maps(namespace: str) -> str:
    """Return the dashboards as ConfigMaps."""
    documents = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"unisono-dashboard-{name.removesuffix('.json')}",
                "namespace": namespace,
                "labels": {SIDECAR_LABEL: "1"},
            },
            "data": {name: json.dumps(one)},
        }
        for name, one in dashboards().items()
    ]
    return yaml.safe_dump_all(documents, sort_keys=False)
