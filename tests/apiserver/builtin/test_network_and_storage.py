"""Services and their addresses."""

from __future__ import annotations

import ipaddress
from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import Around, created, refusals
from unisono.apiserver.builtin.network_and_storage import NETWORK
from unisono.apiserver.objects import Json


def service(name: str = "s", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def test_a_service_gets_an_address_that_depends_on_its_name_only() -> None:
    one = created("/services", service(ports=[{"port": 80}]))["spec"]
    again = created("/services", service(ports=[{"port": 80}]))["spec"]
    assert ipaddress.ip_address(one["clusterIP"]) in NETWORK
    assert one["clusterIP"] == again["clusterIP"] == one["clusterIPs"][0]
    assert one["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (one["type"], one["sessionAffinity"]) == ("ClusterIP", "None")


def test_no_two_services_share_an_address() -> None:
    context = Around()
    addresses = set()
    for number in range(50):
        made = created("/services", service(f"s{number}", ports=[{"port": 80}]), context)
        context.add("/services", made)
        # A twin of the same name in the same place would want the same address.
        twin = created("/services", service(f"s{number}", ports=[{"port": 80}]), context)
        addresses |= {made["spec"]["clusterIP"], twin["spec"]["clusterIP"]}
    assert len(addresses) >= 99


def test_a_headless_service_has_none() -> None:
    spec = created("/services", service(clusterIP="None", selector={"a": "b"}))["spec"]
    assert spec["clusterIPs"] == ["None"]
    assert spec["ipFamilies"] == ["IPv4"]


def test_ports_on_nodes_are_given_once() -> None:
    context = Around()
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    first = created("/services", service("x", type="NodePort", ports=ports), context)
    context.add("/services", first)
    second = created("/services", service("y", type="LoadBalancer", ports=[{"port": 80}]), context)
    given = [port["nodePort"] for made in (first, second) for port in made["spec"]["ports"]]
    assert given == [30000, 30001, 30002]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (service(), [("Required", "spec.ports")]),
        (service(type="ExternalName", externalName="a.b"), []),
        (service(type="ExternalName"), [("Required", "spec.externalName")]),
        (
            service(type="NodePort", clusterIP="None", ports=[{"port": 1}]),
            [("Invalid", "spec.clusterIPs[0]")],
        ),
        (
            service(ports=[{"port": 1, "nodePort": 30001}]),
            [("Forbidden", "spec.ports[0].nodePort")],
        ),
        (
            service(type="Foo", ports=[{"port": 0, "name": "a"}, {"port": 1, "protocol": "x"}]),
            [
                ("NotSupported", "spec.type"),
                ("Invalid", "spec.ports[0].port"),
                ("Required", "spec.ports[1].name"),
                ("NotSupported", "spec.ports[1].protocol"),
            ],
        ),
    ],
)
def test_a_service(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals("/services", made) == expected


def test_the_address_stays() -> None:
    old = created("/services", service(type="NodePort", ports=[{"port": 80}]))
    new = deepcopy(old)
    for field in ("clusterIP", "clusterIPs"):
        del new["spec"][field]
    del new["spec"]["ports"][0]["nodePort"]
    assert refusals("/services", new, old) == []
    assert new["spec"] == old["spec"], "a manifest that is written again need not repeat it"
    new["spec"]["clusterIP"] = "10.96.1.1"
    assert refusals("/services", new, old) == [("Invalid", "spec.clusterIPs[0]")]
