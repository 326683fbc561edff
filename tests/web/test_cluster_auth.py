"""Sign-in on a cluster: which users are let in, what they may see, how often the API is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.servers import embedded
from unisono.apiserver.access.credential_files import write_kubeconfig
from unisono.kinds.overriding import override
from unisono.kube.connect import connected
from unisono.kube.errors import Unreachable
from unisono.kube.form import Json
from unisono.kube.kubeconfig import find_access
from unisono.runtime.clock import RealClock
from unisono.runtime.ids import new_uid, random_source
from unisono.web.auth import AuthenticationError, Permissions
from unisono.web.cluster_auth import ClusterAuthenticator

USERS = {"lee-token": "lee", "root-token": "root"}


class Reviewer:
    """An API that knows two people: root may list everything, lee workloads of two namespaces."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.is_there = True
        self.lee_may = {("workloads", "team-a"), ("workloads", "team-b"), ("pods", "team-b")}

    async def create(self, new: Json) -> Json:
        self.asked[new["kind"]] += 1
        if not self.is_there:
            raise Unreachable("gone", sent=False)
        spec = new["spec"]
        if new["kind"] == "TokenReview":
            name = USERS.get(spec["token"])
            user = {"username": name, "groups": ["system:authenticated"], "uid": "1"}
            return {"status": {"authenticated": True, "user": user} if name else {}}
        about = spec["resourceAttributes"]
        assert about["verb"] == "list"
        assert spec["groups"] == ["system:authenticated"]
        may = spec["user"] == "root" or (about["resource"], about["namespace"]) in self.lee_may
        return {"status": {"allowed": may}}


class Story:
    """A authenticator with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.api = Reviewer()
        self.now = 0.0
        self.door = ClusterAuthenticator(
            self.api, lambda: ("team-a", "team-b", "team-c"), now=lambda: self.now
        )

    async def admit(self, token: str) -> Permissions | None:
        return await self.door.admit({"authorization": f"Bearer {token}"})


def test_people_see_what_they_may_list() -> None:
    async def main() -> None:
        story = Story()
        root = await story.admit("root-token")
        assert root is not None
        assert (root.workloads, root.pods, root.nodes, root.reports) == (None, None, True, True)
        lee = await story.admit("lee-token")
        assert lee is not None
        assert lee.workloads == frozenset({"team-a", "team-b"})
        assert not any((lee.nodes, lee.queues, lee.machines, lee.reports))
        assert await story.door.admit({"cookie": "a=b; unisono-token=lee-token"}) is lee
        assert await story.admit("unknown") is None
        assert await story.door.admit({}) is None

    asyncio.run(main())


def test_pods_are_asked_about_when_a_workload_is_opened() -> None:
    async def main() -> None:
        story = Story()
        lee = await story.admit("lee-token")
        assert lee is not None
        for _ in range(2):
            assert (await story.door.may_see_pods(lee, "team-b")).sees_pods("team-b")
            assert not (await story.door.may_see_pods(lee, "team-a")).sees_pods("team-a")
        asked = story.api.asked["SubjectAccessReview"]
        await story.door.may_see_pods(lee, "team-c")  # lee does not see its gangs at all
        assert story.api.asked["SubjectAccessReview"] == asked == 5 + 3 + 2

    asyncio.run(main())


def test_answers_are_believed_for_a_minute() -> None:
    async def main() -> None:
        story = Story()
        await asyncio.gather(*(story.admit("lee-token") for _ in range(9)))
        once = story.api.asked.copy()
        story.now = 59.0
        await story.admit("lee-token")
        assert story.api.asked == once
        story.api.lee_may.clear()
        story.now = 61.0
        lee = await story.admit("lee-token")
        assert lee is not None
        assert lee.workloads == frozenset()

    asyncio.run(main())


def test_guessing_tokens_costs_little_and_nothing_grows() -> None:
    async def main() -> None:
        story = Story()
        for _ in range(5):
            assert await story.admit("wrong") is None
        assert story.api.asked["TokenReview"] == 1
        for number in range(3_000):
            await story.admit(f"wrong-{number}")
        assert len(story.door._refused) <= 1024
        assert await story.admit("x" * 20_000) is None
        assert story.api.asked["TokenReview"] == 3_001

    asyncio.run(main())


def test_without_the_api_no_user_is_let_in() -> None:
    async def main() -> None:
        story = Story()
        await story.admit("root-token")
        story.api.is_there = False
        story.now = 100.0
        with pytest.raises(AuthenticationError, match="try again"):
            await story.admit("root-token")

    asyncio.run(main())


@pytest.mark.slow
def test_the_embedded_api_answers_the_same_questions(tmp_path: Path) -> None:
    with embedded(tmp_path) as server:
        path = tmp_path / "config"
        authority = server.ca_file.read_bytes()
        write_kubeconfig(path, url=server.url, authority_pem=authority, token=server.token)

        async def main() -> None:
            access = find_access(path=path)
            async with connected(
                access, clock=RealClock(), random_source=random_source(), ids=new_uid
            ) as api:
                authenticator = ClusterAuthenticator(api, lambda: ("default",), now=lambda: 0.0)
                owner = await authenticator.admit({"authorization": f"Bearer {server.token}"})
                assert owner is not None
                assert (owner.workloads, owner.nodes) == (None, True)
                assert await authenticator.admit({"authorization": "Bearer nobodys"}) is None

        asyncio.run(main())


def test_a_flood_of_unknown_tokens_holds_up_no_user_that_is_signed_in() -> None:
    class Slow(Reviewer):
        @override
        async def create(self, new: Json) -> Json:
            if new["spec"].get("token", "").startswith("guess"):
                await asyncio.Event().wait()
            return await super().create(new)

    async def main() -> None:
        story = Story()
        story.api = Slow()
        story.door = ClusterAuthenticator(story.api, lambda: ("team-a",), now=lambda: story.now)
        assert await story.admit("lee-token")
        flood = [asyncio.create_task(story.admit(f"guess-{number}")) for number in range(100)]
        await asyncio.sleep(0)
        story.now += 61  # what is known of lee is too old
        async with asyncio.timeout(5):
            assert await story.admit("lee-token")
        for one in flood:
            one.cancel()

    asyncio.run(main())
