"""Every pod has an address of its own."""

from __future__ import annotations

from ipaddress import IPv4Address

from unisono.runner.addresses import NETWORK, Addresses


def test_addresses_are_of_this_machine_and_follow_from_the_pod() -> None:
    first, second = Addresses(), Addresses()
    for uid in ("a", "b", "c"):
        assert first.of(uid) == second.of(uid) == first.of(uid)
        assert IPv4Address(first.of(uid)) in NETWORK


def test_two_pods_never_share_one() -> None:
    addresses = Addresses()
    wanted = Addresses().of("b")
    addresses.learn("a", wanted)
    assert addresses.of("b") != wanted
    addresses.release("b")
    addresses.release("a")
    assert addresses.of("b") == wanted


def test_ten_thousand_pods() -> None:
    addresses = Addresses()
    assert len({addresses.of(f"uid-{number}") for number in range(10_000)}) == 10_000
