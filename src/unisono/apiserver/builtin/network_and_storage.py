"""Services, claims and volumes: stored, although no packets are sent and nothing is provisioned.

Clients wait for an address before they go on, and headless services (`clusterIP: None`) are how
pods of a job find each other by name. Addresses are chosen by the service's name, so the same
manifest gets the same one in every cluster unless it is taken.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from unisono.apiserver.builtin.metadata import check_labels
from unisono.apiserver.errors import ApiError, Cause
from unisono.apiserver.objects import Json, at, child, fill, fill_text, items, numbered
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.overriding import override

NETWORK = ipaddress.ip_network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ON_NODES = ("NodePort", "LoadBalancer")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MAX_PORT = 65535
_AFFINITY_SECONDS = 10800
# The first addresses of the network are those that people expect for well-known services.
_RESERVED = 16


class ServiceStrategy(Strategy):
    """A service."""

    has_generation = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Give the service an address, and ports on nodes if it asks for them."""
        obj["status"] = {"loadBalancer": {}}
        spec = child(obj, "spec")
        _fill(spec)
        metadata = at(obj, "metadata")
        _set_address(spec, f"{metadata.get('namespace')}/{metadata.get('name')}", context)
        _set_node_ports(spec, context)

    @override
    def prepare_update(self, obj: Json, old: Json, context: Context) -> None:
        """Keep what was given when the same manifest is written again."""
        spec, before = child(obj, "spec"), at(old, "spec")
        _fill(spec)
        if spec.get("type") != "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(field) and before.get(field):
                    spec[field] = before[field]
            metadata = at(obj, "metadata")
            _set_address(spec, f"{metadata.get('namespace')}/{metadata.get('name')}", context)
        given = {(port.get("port"), port.get("protocol")): port for port in items(before, "ports")}
        for port in items(spec, "ports") if spec.get("type") in _ON_NODES else ():
            same = given.get((port.get("port"), port.get("protocol")), {})
            if not port.get("nodePort") and same.get("nodePort"):
                port["nodePort"] = same["nodePort"]
        _set_node_ports(spec, context)

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec."""
        _fill(child(obj, "spec"))

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield bad ports, and a change of the address."""
        spec = at(obj, "spec")
        kind, address = spec.get("type"), spec.get("clusterIP")
        if kind not in _TYPES:
            yield not_supported("spec.type", kind, _TYPES)
        if kind == "ExternalName" and not spec.get("externalName"):
            yield required("spec.externalName")
        if kind in _ON_NODES and address == "None":
            yield invalid("spec.clusterIPs[0]", address, f"may not be None for {kind} services")
        if not items(spec, "ports") and kind != "ExternalName" and address != "None":
            yield required("spec.ports")
        yield from _check_ports(spec)
        yield from check_labels(spec.get("selector"), "spec.selector")
        if spec.get("sessionAffinity") not in ("None", "ClientIP"):
            yield not_supported(
                "spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None")
            )
        before = at(old or {}, "spec")
        same_type = "ExternalName" not in (kind, before.get("type"))
        if before.get("clusterIP") and same_type and address != before["clusterIP"]:
            yield invalid("spec.clusterIPs[0]", address, "may not change once set")


def _check_ports(spec: Json) -> Iterator[Cause]:
    ports = items(spec, "ports")
    names: set[str] = set()
    pairs: set[tuple[object, object]] = set()
    for path, port in numbered(spec, "ports", "spec"):
        name = str(port.get("name") or "")
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        if name and name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        number = port.get("port")
        if not isinstance(number, int) or not 1 <= number <= _MAX_PORT:
            yield invalid(f"{path}.port", number, f"must be between 1 and {_MAX_PORT}, inclusive")
        if port.get("protocol") not in _PROTOCOLS:
            yield not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
        if port.get("nodePort") and spec.get("type") not in _ON_NODES:
            yield forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")
        pair = (number, port.get("protocol"))
        if pair in pairs:
            yield duplicate(path, {"port": number, "protocol": port.get("protocol")})
        pairs.add(pair)


def _fill(spec: Json) -> None:
    fill_text(spec, type="ClusterIP", sessionAffinity="None")
    if spec.get("sessionAffinity") == "ClientIP":
        fill(
            child(child(spec, "sessionAffinityConfig"), "clientIP"),
            timeoutSeconds=_AFFINITY_SECONDS,
        )
    elif spec.get("sessionAffinity") == "None":
        spec.pop("sessionAffinityConfig", None)
    for port in items(spec, "ports"):
        fill_text(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, "") and "port" in port:
            port["targetPort"] = port["port"]
    if spec.get("type") in _ON_NODES:
        fill_text(spec, externalTrafficPolicy="Cluster")
    if spec.get("type") == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
    if spec.get("type") != "ExternalName":
        fill_text(spec, internalTrafficPolicy="Cluster")


# ---- addresses ---------------------------------------------------------------------------------


def _set_address(spec: Json, name: str, context: Context) -> None:
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        listed = spec.get("clusterIPs")
        spec["clusterIP"] = (
            listed[0] if isinstance(listed, list) and listed else _free(name, context)
        )
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    # Without an address and without pods to look for, a service stands for any family.
    is_any = spec["clusterIP"] == "None" and not spec.get("selector")
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if is_any else ["IPv4"]
    fill_text(spec, ipFamilyPolicy="RequireDualStack" if is_any else "SingleStack")


def _free(name: str, context: Context) -> str:
    taken = {str(at(one, "spec").get("clusterIP")) for one in context.every("/services")}
    usable = NETWORK.num_addresses - _RESERVED - 1  # without the last, the broadcast address
    first = zlib.crc32(name.encode())
    for step in range(usable):
        address = str(NETWORK[_RESERVED + (first + step) % usable])
        if address not in taken:
            return address
    raise ApiError(500, "InternalError", f"all {usable} addresses of services are taken")


def _set_node_ports(spec: Json, context: Context) -> None:
    if spec.get("type") not in _ON_NODES or spec.get("allocateLoadBalancerNodePorts") is False:
        return
    wanting = [port for port in items(spec, "ports") if not port.get("nodePort")]
    if not wanting:
        return
    taken = {
        port.get("nodePort")
        for service in (*context.every("/services"), {"spec": spec})
        for port in items(at(service, "spec"), "ports")
    }
    free = (number for number in NODE_PORTS if number not in taken)
    for port in wanting:
        number = next(free, None)
        if number is None:
            raise ApiError(500, "InternalError", "all ports of nodes are taken")
        port["nodePort"] = number


# ---- storage -------------------------------------------------------------------------------------
#
# Claims, volumes and storage classes, as far as pods name them; nothing is provisioned.

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


class ClaimStrategy(Strategy):
    """A PersistentVolumeClaim."""

    has_generation = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """A new claim waits for a volume."""
        obj["status"] = {"phase": "Pending"}

    @override
    def default(self, obj: Json) -> None:
        """Fill in that it wants a file system."""
        fill_text(child(obj, "spec"), volumeMode="Filesystem")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what is missing, and changes of anything but the size."""
        spec = at(obj, "spec")
        yield from _check_modes(spec)
        if not at(spec, "resources", "requests").get("storage"):
            yield required("spec.resources[storage]")
        if old is not None and _frozen(spec) != _frozen(at(old, "spec")):
            why = "spec is immutable after creation except resources.requests"
            yield forbidden("spec", why)


class VolumeStrategy(Strategy):
    """A PersistentVolume."""

    has_generation = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """A new volume is not claimed yet."""
        obj["status"] = {"phase": "Pending"}

    @override
    def default(self, obj: Json) -> None:
        """Fill in that it holds a file system and is kept."""
        fill_text(
            child(obj, "spec"), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain"
        )

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what is missing."""
        spec = at(obj, "spec")
        yield from _check_modes(spec)
        if not at(spec, "capacity").get("storage"):
            yield required("spec.capacity[storage]")


class StorageClassStrategy(Strategy):
    """A StorageClass."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Fill in what becomes of volumes, and when they are bound."""
        fill_text(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield changes of what volumes were made with."""
        if not obj.get("provisioner"):
            yield required("provisioner")
        for field in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
            if old is not None and obj.get(field) != old.get(field):
                yield forbidden(field, "updates to it are forbidden")


def _check_modes(spec: Json) -> Iterator[Cause]:
    modes = spec.get("accessModes")
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes or ():
        if mode not in _MODES:
            yield not_supported("spec.accessModes", mode, _MODES)


def _frozen(spec: Json) -> Json:
    """Return a claim's spec without its size and what binding it fills in."""
    free = ("resources", "volumeName", "volumeAttributesClassName", "storageClassName")
    rest = {key: value for key, value in spec.items() if key not in free}
    fill(rest, volumeMode="Filesystem")
    return rest
