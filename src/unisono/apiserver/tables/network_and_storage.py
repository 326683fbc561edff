"""Services, endpoints, ingress and network policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Content,
    column,
    flagged_name,
    inside,
    joined,
    labels_cell,
    named,
    of,
    printer,
    selector_cell,
    wide,
)
from unisono.apiserver.times import UNKNOWN

# So many stand in a cell, then "+ 2 more...".
_MOST_HOSTS = 3
_MOST_ENDPOINTS = 3


def _shortened(words: list[str], most: int) -> str:
    shown = ",".join(words[:most])
    return f"{shown} + {len(words) - most} more..." if len(words) > most else shown


def _balanced(status: Mapping[str, Any]) -> list[str]:
    """Return the addresses that a load balancer got, without doubles."""
    ingress: Iterable[Mapping[str, Any]] = inside(dict(status), "loadBalancer", "ingress") or ()
    return sorted({one.get("ip") or one.get("hostname") or "" for one in ingress} - {""})


def _cluster_ip(service: Mapping[str, Any], now: float) -> Content:
    addresses = inside(service, "spec", "clusterIPs") or ()
    return str(addresses[0] if addresses else inside(service, "spec", "clusterIP") or NONE)


def _external_ip(service: Mapping[str, Any], now: float) -> Content:
    spec = service.get("spec") or {}
    kind, external = spec.get("type") or "ClusterIP", spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        return joined([*_balanced(service.get("status") or {}), *external], "<pending>")
    return joined(external) if kind in ("ClusterIP", "NodePort") else UNKNOWN


def _ports(service: Mapping[str, Any], now: float) -> Content:
    pieces = []
    for port in inside(service, "spec", "ports") or ():
        node_port = port.get("nodePort")
        number = f"{port.get('port')}:{node_port}" if node_port else port.get("port")
        pieces.append(f"{number}/{port.get('protocol') or 'TCP'}")
    return joined(pieces)


def _endpoints(endpoints: Mapping[str, Any], now: float) -> Content:
    found = []
    for subset in endpoints.get("subsets") or ():
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            found += addresses
        for port in ports:
            found += [f"{address}:{port.get('port')}" for address in addresses]
    return _shortened(found, _MOST_ENDPOINTS) if found else NONE


def _hosts(ingress: Mapping[str, Any], now: float) -> Content:
    rules = inside(ingress, "spec", "rules") or ()
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == _MOST_HOSTS:  # what follows is counted by rules, with a host or without
            return f"{','.join(hosts)} + {len(rules) - _MOST_HOSTS} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return joined(hosts, "*")


def _address(ingress: Mapping[str, Any], now: float) -> Content:
    return ",".join(_balanced(ingress.get("status") or {}))


def _ingress_ports(ingress: Mapping[str, Any], now: float) -> Content:
    return "80, 443" if inside(ingress, "spec", "tls") else "80"


def _parameters(ingress_class: Mapping[str, Any], now: float) -> Content:
    parameters = inside(ingress_class, "spec", "parameters")
    if not parameters:
        return NONE
    group = parameters.get("apiGroup")
    kind = parameters.get("kind", "")
    return f"{kind}.{group}/{parameters['name']}" if group else f"{kind}/{parameters['name']}"


SERVICES = printer(
    NAME,
    column("Type", of("spec", "type", absent="ClusterIP"), "How the service can be reached."),
    column("Cluster-IP", _cluster_ip, "Its address inside the cluster."),
    column("External-IP", _external_ip, "Its address outside the cluster."),
    column("Port(s)", _ports, "Its ports, and after a colon those on every node."),
    AGE,
    wide("Selector", labels_cell("spec", "selector"), "Which pods answer."),
)

ENDPOINTS = printer(NAME, column("Endpoints", _endpoints, "The addresses that answer."), AGE)

INGRESSES = printer(
    NAME,
    column("Class", of("spec", "ingressClassName", absent=NONE), "The class that serves it."),
    column("Hosts", _hosts, "For which hosts."),
    column("Address", _address, "Where it can be reached."),
    column("Ports", _ingress_ports, "On which ports."),
    AGE,
)

INGRESS_CLASSES = printer(
    named(flagged_name("ingressclass.kubernetes.io/is-default-class")),
    column("Controller", of("spec", "controller"), "The controller of this class."),
    column("Parameters", _parameters, "Where that one is configured."),
    AGE,
)

NETWORK_POLICIES = printer(
    NAME,
    column("Pod-Selector", selector_cell("spec", "podSelector"), "For which pods it holds."),
    AGE,
)


# ---- volumes -------------------------------------------------------------------------------------


# In this order they stand in a cell.
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _phase(obj: Mapping[str, Any], now: float) -> Content:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(inside(obj, "status", "phase") or "")


def _class(obj: Mapping[str, Any], now: float) -> Content:
    old = inside(obj, "metadata", "annotations", _OLD_CLASS)
    return str(old or inside(obj, "spec", "storageClassName") or "")


def _claim_capacity(claim: Mapping[str, Any], now: float) -> Content:
    # Until it is bound a claim has nothing; what it asks for would mislead.
    if not inside(claim, "spec", "volumeName"):
        return ""
    return str(inside(claim, "status", "capacity", "storage") or "0")


def _claim_modes(claim: Mapping[str, Any], now: float) -> Content:
    if not inside(claim, "spec", "volumeName"):
        return ""
    return _modes(inside(claim, "status", "accessModes"))


def _volume_modes(volume: Mapping[str, Any], now: float) -> Content:
    return _modes(inside(volume, "spec", "accessModes"))


def _claim(volume: Mapping[str, Any], now: float) -> Content:
    reference = inside(volume, "spec", "claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


_STATUS = column("Status", _phase, "Whether it is bound.")
_STORAGE_CLASS = column("StorageClass", _class, "Of which class it is.")
_ATTRIBUTES = column(
    "VolumeAttributesClass",
    of("spec", "volumeAttributesClassName", absent=UNSET),
    "Which changeable attributes it wants.",
)
_VOLUME_MODE = wide(
    "VolumeMode", of("spec", "volumeMode", absent=UNSET), "A file system or a bare device."
)

CLAIMS = printer(
    NAME,
    _STATUS,
    column("Volume", of("spec", "volumeName"), "The volume that it is bound to."),
    column("Capacity", _claim_capacity, "How much room there is."),
    column("Access Modes", _claim_modes, "How it may be mounted, and by how many nodes."),
    _STORAGE_CLASS,
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)

VOLUMES = printer(
    NAME,
    column("Capacity", of("spec", "capacity", "storage", absent="0"), "How much room there is."),
    column("Access Modes", _volume_modes, "How it may be mounted, and by how many nodes."),
    column(
        "Reclaim Policy",
        of("spec", "persistentVolumeReclaimPolicy"),
        "What becomes of it when its claim goes.",
    ),
    _STATUS,
    column("Claim", _claim, "The claim that has it."),
    _STORAGE_CLASS,
    _ATTRIBUTES,
    column("Reason", of("status", "reason"), "Why it is in this state."),
    AGE,
    _VOLUME_MODE,
)

STORAGE_CLASSES = printer(
    named(flagged_name("storageclass.kubernetes.io/is-default-class")),
    column("Provisioner", of("provisioner"), "The program that makes the volumes."),
    column(
        "ReclaimPolicy", of("reclaimPolicy", absent="Delete"), "What becomes of a volume later."
    ),
    column(
        "VolumeBindingMode",
        of("volumeBindingMode", absent="Immediate"),
        "Whether a volume is made at once or when a pod needs it.",
    ),
    column(
        "AllowVolumeExpansion",
        of("allowVolumeExpansion", absent=False),
        "Whether a claim may grow.",
    ),
    AGE,
)
