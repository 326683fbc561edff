"""Specs that are not run: every entry has a reason and names a package that there is."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.suites.kueue.build import PACKAGES as KUEUE
from tests.suites.kueue.cluster import SERVERS
from tests.suites.kueue.run import reasons
from tests.suites.volcano.build import PACKAGES as VOLCANO
from tests.suites.volcano.run import reasons as reasons_of_volcano


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("server", SERVERS)
def test_every_entry_names_a_package_and_says_why(server: str, strict: bool) -> None:
    _check(reasons(server, strict=strict), KUEUE)


def test_so_does_every_entry_of_volcano() -> None:
    _check(reasons_of_volcano(), VOLCANO)


def _check(found: dict[str, dict[str, str]], packages: Collection[str]) -> None:
    assert set(found) <= set(packages)
    for specs in found.values():
        for name, reason in specs.items():
            assert len(name) > 4, "a part of a name that is no other's"
            assert len(reason.split()) > 2
