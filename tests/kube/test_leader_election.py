"""Replicas that want to lead, in virtual time over a small API (kube-api.md, scenario 27)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.kube.fake_api import Asked, FakeApi, refuse
from tests.kube.virtual import VirtualClock, run, settle
from unisono.kube import Candidate, Kind, client_over
from unisono.kube.errors import NotLeading, Unreachable
from unisono.kube.transport import Answer

LEASES = "/apis/coordination.k8s.io/v1/namespaces/sys/leases"
POD = Kind("v1", "Pod")


class Cut:
    """A transport that can be cut from the API for one replica alone."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api
        self.is_cut = False
        self.stream = api.stream

    async def request(self, *asked: Any, **options: Any) -> Answer:
        if self.is_cut:
            await asyncio.sleep(options["timeout"])
            raise Unreachable("no route", sent=True)
        return await self._api.request(*asked, **options)


class Replica:
    """A candidate whose work writes down when it led."""

    def __init__(self, api: FakeApi, name: str, seed: int = 1) -> None:
        self.clock = VirtualClock()
        self.wire = Cut(api)
        random_source = random.Random(f"{seed} {name}")
        self.client = client_over(self.wire, clock=self.clock, random_source=random_source)
        self.candidate = Candidate(
            self.client, name, clock=self.clock, random_source=random_source, namespace="sys"
        )
        self.began: list[float] = []
        self.ended: list[float] = []
        self.error: Exception | None = None

    async def work(self) -> None:
        self.began.append(self.clock.monotonic())
        try:
            while True:
                await self.clock.sleep(1)
        finally:
            self.ended.append(self.clock.monotonic())

    async def run(self) -> None:
        try:
            await self.candidate.lead(self.work)
        except NotLeading as error:
            self.error = error


def holder(api: FakeApi) -> str:
    return str(api.collections[LEASES]["unisono"]["spec"]["holderIdentity"])


def test_one_leads_and_the_other_waits() -> None:
    async def main() -> None:
        api = FakeApi()
        one, two = Replica(api, "one"), Replica(api, "two")
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run())]
            await settle()
            tasks.append(group.create_task(two.run()))
            await one.clock.sleep(120)
            assert one.candidate.is_leading()
            assert not two.candidate.is_leading()
            assert two.began == []
            assert two.candidate.election.holder == "one"
            for task in tasks:
                task.cancel()

    run(main())


@pytest.mark.parametrize("seed", range(20))
def test_scenario_27_when_the_leader_dies_the_standby_acts_within_17_seconds(seed: int) -> None:
    async def main() -> None:
        api = FakeApi()
        random_source = random.Random(seed)
        one, two = Replica(api, "one", seed), Replica(api, "two", seed)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(one.run())
            await settle()
            second = group.create_task(two.run())
            await one.clock.sleep(100 + random_source.uniform(0, 10))
            one.wire.is_cut = True  # killed: not even a goodbye gets out
            died = one.clock.monotonic()
            first.cancel()
            await one.clock.sleep(20)
            assert len(two.began) == 1
            assert 13 <= two.began[0] - died <= 17.1
            assert api.collections[LEASES]["unisono"]["spec"]["leaseTransitions"] == 1
            second.cancel()

    run(main())


@pytest.mark.parametrize("seed", range(20))
def test_a_leader_that_is_cut_off_stops_before_the_other_begins(seed: int) -> None:
    async def main() -> None:
        api = FakeApi()
        random_source = random.Random(seed)
        one, two = Replica(api, "one", seed), Replica(api, "two", seed)
        async with asyncio.TaskGroup() as group:
            group.create_task(one.run())
            await settle()
            second = group.create_task(two.run())
            await one.clock.sleep(50 + random_source.uniform(0, 5))
            one.wire.is_cut = True
            await one.clock.sleep(30)
            assert isinstance(one.error, NotLeading)
            assert one.ended[0] < two.began[0] - 2, "seconds apart, whatever the clocks do"
            second.cancel()

    run(main())


def test_a_clean_end_hands_over_within_two_seconds() -> None:
    async def main() -> None:
        api = FakeApi()
        one, two = Replica(api, "one"), Replica(api, "two")
        async with asyncio.TaskGroup() as group:
            first = group.create_task(one.run())
            await settle()
            second = group.create_task(two.run())
            await one.clock.sleep(33.3)
            first.cancel()
            await settle()
            assert holder(api) == ""
            assert not one.candidate.is_leading()
            left = one.clock.monotonic()
            await one.clock.sleep(3)
            assert two.began[0] - left <= 2.0
            second.cancel()

    run(main())


def test_work_that_ends_by_itself_gives_the_lease_back() -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")

        async def work() -> None:
            await one.clock.sleep(5)

        await one.candidate.lead(work)
        assert holder(api) == ""

    run(main())


def test_a_goodbye_that_is_not_heard_takes_two_seconds_at_most() -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")

        async def work() -> None:
            await one.clock.sleep(5)
            one.wire.is_cut = True

        began = one.clock.monotonic()
        await one.candidate.lead(work)
        assert one.clock.monotonic() - began <= 7.1

    run(main())


def test_a_goodbye_while_being_cancelled_is_bounded_too() -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one.run())
            await one.clock.sleep(5)
            one.wire.is_cut = True
            task.cancel()
        assert one.clock.monotonic() <= 7.1
        assert task.cancelled()

    run(main())


def test_trouble_shorter_than_the_deadline_is_survived() -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one.run())
            await one.clock.sleep(5)
            for _ in range(4):
                api.fail(refuse(500, "Trouble"), Unreachable("down", sent=False))
                await one.clock.sleep(8)
                assert one.candidate.is_leading()
            task.cancel()

    run(main())


def _lost_renewal(api: FakeApi) -> None:
    api.lose_answer()


def _conflict(api: FakeApi) -> None:
    api.put(LEASES, "unisono", **api.collections[LEASES]["unisono"])


@pytest.mark.parametrize("disturb", [_lost_renewal, _conflict])
def test_the_leader_stays_the_leader_while_the_lease_is_its_own(
    disturb: Callable[[FakeApi], None],
) -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one.run())
            await one.clock.sleep(5)
            disturb(api)
            await one.clock.sleep(60)
            assert one.candidate.is_leading()
            assert len(one.began) == 1
            task.cancel()

    run(main())


def test_a_lease_taken_by_force_is_held() -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")
        async with asyncio.TaskGroup() as group:
            group.create_task(one.run())
            await one.clock.sleep(5)
            stolen = {**api.collections[LEASES]["unisono"]}
            stolen["spec"] = {**stolen["spec"], "holderIdentity": "thief"}
            api.put(LEASES, "unisono", **stolen)
        assert isinstance(one.error, NotLeading)
        assert "to thief" in str(one.error)
        assert one.ended[0] - 5 <= 2.1
        assert holder(api) == "thief", "what is not ours is not given back"

    run(main())


def test_writes_fail_from_the_moment_at_which_the_lease_is_over() -> None:
    async def main() -> None:
        api = FakeApi()
        one = Replica(api, "one")
        guarded = one.client.variant(permit=one.candidate.permit)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        with pytest.raises(NotLeading):
            await guarded.create(pod)

        async def work() -> None:
            await guarded.create(pod)
            one.wire.is_cut = True
            while one.candidate.is_leading():
                await one.clock.sleep(0.5)
            one.wire.is_cut = False
            with pytest.raises(NotLeading):
                await guarded.delete(POD, "p")

        with pytest.raises(NotLeading):
            await one.candidate.lead(work)
        assert [asked for asked in api.asked if asked.method == "DELETE"] == []

    run(main())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_never_two_leaders(seed: int) -> None:
    """Three replicas, links that fail at random: no two of them work at once."""

    async def main() -> None:
        api = FakeApi()
        random_source = random.Random(seed)
        replicas = [Replica(api, name, seed) for name in ("one", "two", "three")]
        clock = VirtualClock()

        async def again(replica: Replica) -> None:
            while True:
                await replica.run()
                await clock.sleep(random_source.uniform(0, 5))

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(again(replica)) for replica in replicas]
            for _ in range(60):
                await clock.sleep(random_source.uniform(0, 12))
                random_source.choice(replicas).wire.is_cut = random_source.random() < 0.4
                if random_source.random() < 0.2:
                    api.lose_answer()
                leading = [each for each in replicas if each.candidate.is_leading()]
                assert len(leading) <= 1
            for task in tasks:
                task.cancel()
        spells = sorted(
            (began, ended)
            for replica in replicas
            for began, ended in zip(replica.began, replica.ended, strict=True)
        )
        assert spells
        for (_, ended), (began, _) in itertools.pairwise(spells):
            assert ended <= began + 0.001

    run(main())


def test_other_requests_are_not_touched() -> None:
    def fault(asked: Asked) -> Answer | None:
        assert asked.path.startswith(LEASES)
        return None

    async def main() -> None:
        api = FakeApi()
        api.faults.extend([fault] * 100)
        one = Replica(api, "one")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one.run())
            await one.clock.sleep(30)
            task.cancel()

    run(main())
