"""Specs that are not run: every entry has a reason and names a package that there is."""

from __future__ import annotations

import pytest

from tests.suites.kueue.build import PACKAGES
from tests.suites.kueue.cluster import SERVERS
from tests.suites.kueue.run import reasons


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("server", SERVERS)
def test_every_entry_names_a_package_and_says_why(server: str, strict: bool) -> None:
    found = reasons(server, strict=strict)
    assert set(found) <= set(PACKAGES)
    for specs in found.values():
        for name, reason in specs.items():
            assert len(name) > 8, "a part of a name that is no other's"
            assert len(reason.split()) > 2
