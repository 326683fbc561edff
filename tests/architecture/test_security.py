"""The tests and roles that SECURITY.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

from unisono.control.assembly import OPERATORS
from unisono.control.rbac import PARTS, QUEUEING, rights

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:tests|src)/[\w/.]+)`", PAGE)
    assert len(named) >= 6
    assert [one for one in named if not (ROOT / one).is_file()] == []


def test_it_names_exactly_the_operators_that_create_pods() -> None:
    makers = [
        part
        for part in PARTS
        for one in rights(part)
        if one.full_name == "pods" and "create" in one.verbs
    ]
    told = re.search(r"- with ([^:]*): besides, create pods", PAGE)
    assert told is not None
    assert re.findall(r"`(\w+)`", told[1]) == makers
    assert {*makers} <= {*OPERATORS}


def test_the_page_of_installing_tells_what_each_role_creates() -> None:
    page = (ROOT / "docs/reference/install.md").read_text()
    for part in PARTS:
        role = r"always \| `unisono`" if part == QUEUEING else rf"`{part}` \| `unisono-{part}`"
        row = re.search(rf"^\| {role} \| (.*) \|$", page, re.M)
        assert row is not None, part
        told = row[1].lower()
        made = {one.resource for one in rights(part) if "create" in one.verbs}
        # What queueing may create anyway need not be said of each operator again.
        known = {"pods/binding", "events"} if part == QUEUEING else {"workloads"}
        for resource in made - known:
            assert resource in told, (part, resource)
