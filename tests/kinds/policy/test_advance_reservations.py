"""Reservations as operators write them."""

from __future__ import annotations

import pytest

from tests.support.manifests import only, problems
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName
from unisono.engine.model.policy import AdvanceReservation
from unisono.kinds.policy.settings import settings_of

HEAD = "apiVersion: unisono.dev/v1\nkind: Policy\nreservations:\n  - "
GOOD = {
    "name": "x",
    "start": "2026-01-01T12:00:00Z",
    "duration": "4h",
    "nodes": "[n1, n2]",
    "maintenance": "true",
}


def written(**other: str | None) -> str:
    fields = {key: value for key, value in {**GOOD, **other}.items() if value is not None}
    return HEAD + "{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}\n"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": '""'}, "reservations[0].name"),
        ({"start": "tomorrow"}, "reservations[0].start"),
        ({"duration": None}, "reservations[0]"),
        ({"end": "2026-01-01T16:00:00Z"}, "reservations[0]"),
        ({"duration": "0s"}, "reservations[0].duration"),
        ({"duration": None, "end": "2026-01-01T11:00:00Z"}, "reservations[0].end"),
        ({"nodes": "some"}, "reservations[0].nodes"),
        ({"nodes": "[]"}, "reservations[0].nodes"),
        ({"namespaces": "[a]"}, "reservations[0].maintenance"),
        ({"maintenance": None}, "reservations[0]"),
        ({"maintenance": None, "localQueues": "[main]"}, "reservations[0].localQueues[0]"),
        ({"repeat": "Hourly"}, "reservations[0].repeat"),
        ({"repeat": "Daily", "duration": "24h"}, "reservations[0].repeat"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(change: dict[str, str | None], path: str) -> None:
    assert [where for where, _ in problems(written(**change))] == [path]


def test_a_name_stands_once() -> None:
    again = written() + "  - " + written().removeprefix(HEAD)
    assert [where for where, _ in problems(again)] == ["reservations[1].name"]


def test_nodes_times_and_members_reach_the_engine() -> None:
    assert problems(written()) == []
    team = written(
        maintenance=None,
        nodes="all",
        repeat="Weekly",
        localQueues="[a/b]",
        namespaces="[c]",
        accounts="[d]",
        users="[e]",
    )
    noon = 1_767_268_800_000
    assert settings_of(None, only(team)).policy.reservations == (
        AdvanceReservation(
            name="x",
            start=Instant(noon),
            end=Instant(noon + 4 * 3_600_000),
            local_queues=(LocalQueueKey("a/b"),),
            namespaces=("c",),
            accounts=("d",),
            users=("e",),
            repeat="weekly",
        ),
    )
    second = written(duration=None, end="2026-01-01T12:00:01Z")
    named = settings_of(None, only(second)).policy.reservations[0]
    assert named.nodes == (NodeName("n1"), NodeName("n2"))
    assert named.end == noon + 1000
