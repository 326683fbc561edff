"""The client against servers as they are: the embedded one, and a real kube-apiserver."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.real_time import RealClock
from unisono.kube import (
    Access,
    Candidate,
    Client,
    Delta,
    Dicts,
    Informer,
    Kind,
    Recorder,
    Stream,
    bind,
    client_over,
    evict,
    log,
    scale,
)
from unisono.kube.credentials import Credentials
from unisono.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
)
from unisono.kube.form import Json
from unisono.kube.http_transport import HttpTransport
from unisono.kube.kubeconfig import Login
from unisono.kube.leader_election import LeaseTimes
from unisono.kube.transport import Answer

if TYPE_CHECKING:
    from tests.conformance.servers import Server

pytestmark = pytest.mark.slow

NAMESPACE = Kind("v1", "Namespace")
CONFIG = Kind("v1", "ConfigMap")
POD = Kind("v1", "Pod")
DEPLOYMENT = Kind("apps/v1", "Deployment")
DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
SECONDS = 30  # more than anything here needs on a busy machine


class Wire:
    """A transport that can be unplugged."""

    def __init__(self, inner: HttpTransport) -> None:
        self._inner = inner
        self._plugged = asyncio.Event()
        self._plugged.set()
        self._unplugged = asyncio.Event()

    def unplug(self) -> None:
        self._plugged.clear()
        self._unplugged.set()

    def plug(self) -> None:
        self._unplugged.clear()
        self._plugged.set()

    async def request(self, *asked: Any, **options: Any) -> Answer:
        if not self._plugged.is_set():
            raise Unreachable("unplugged", sent=False)
        return await self._inner.request(*asked, **options)

    @asynccontextmanager
    async def stream(self, *asked: Any, **options: Any) -> AsyncIterator[Stream]:
        if not self._plugged.is_set():
            raise Unreachable("unplugged", sent=False)
        async with self._inner.stream(*asked, **options) as stream:
            yield Stream(stream.code, stream.headers, self._chunks(stream))

    async def _chunks(self, stream: Stream) -> AsyncIterator[bytes]:
        while True:
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(_next(stream.chunks))
                cutting = group.create_task(self._unplugged.wait())
                await asyncio.wait([reading, cutting], return_when=asyncio.FIRST_COMPLETED)
                reading.cancel()
                cutting.cancel()
            if self._unplugged.is_set():
                raise Unreachable("unplugged", sent=True)
            chunk = reading.result()
            if chunk is None:
                return
            yield chunk


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


class Bench:
    """A client in a namespace of its own."""

    def __init__(self, client: Client, wire: Wire, namespace: str) -> None:
        self.client = client
        self.wire = wire
        self.namespace = namespace
        self.clock = RealClock()
        self.chance = random.Random(1)

    def config(self, name: str, **content: Any) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace},
            **content,
        }

    def pod(self, name: str) -> Json:
        container = {"name": "c", "image": "busybox"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"containers": [container]},
        }

    def informer(self, kind: Kind = CONFIG, **options: Any) -> Informer[Json]:
        return Informer(
            self.client,
            kind,
            Dicts(*kind),
            clock=self.clock,
            random_source=self.chance,
            namespace=self.namespace,
            **options,
        )


def at(server: Server, work: Callable[[Bench], Awaitable[None]]) -> None:
    """Do something at a server, in a new namespace."""

    async def main() -> None:
        access = Access(
            server=server.url, authority=server.ca_file, login=Login(token=server.token)
        )
        async with HttpTransport(access, Credentials(access, clock=RealClock())) as transport:
            wire = Wire(transport)
            client = client_over(
                wire,
                clock=RealClock(),
                random_source=random.Random(1),
                ids=lambda: str(uuid.uuid4()),
            )
            made = await client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "kube-"}}
            )
            async with asyncio.timeout(SECONDS):
                await work(Bench(client, wire, made["metadata"]["name"]))

    asyncio.run(main())


@asynccontextmanager
async def running(*informers: Informer[Json]) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in informers]
        for each in informers:
            await each.synced()
        yield
        for task in tasks:
            task.cancel()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


# --- objects ------------------------------------------------------------------------------------


def test_an_object_from_first_to_last(server: Server) -> None:
    async def work(at: Bench) -> None:
        client, space = at.client, at.namespace
        made = await client.create(at.config("c", data={"a": "1"}))
        with pytest.raises(AlreadyExists):
            await client.create(at.config("c"))
        read = await client.get(CONFIG, "c", space)
        assert read["metadata"]["uid"] == made["metadata"]["uid"]
        assert (await client.update({**read, "data": {"a": "2"}}))["data"] == {"a": "2"}
        with pytest.raises(Conflict):
            await client.update({**read, "data": {"a": "3"}})
        patched = await client.patch(CONFIG, "c", space, {"data": {"b": "1", "a": None}})
        assert patched["data"] == {"b": "1"}
        replaced = await client.patch(
            CONFIG,
            "c",
            space,
            [{"op": "replace", "path": "/data/b", "value": "2"}],
            form="json",
        )
        assert replaced["data"] == {"b": "2"}
        dry = await client.patch(CONFIG, "c", space, {"data": {"b": "9"}}, dry_run=True)
        assert dry["data"] == {"b": "9"}
        strategic = await client.patch(CONFIG, "c", space, {"data": {"c": "3"}}, form="strategic")
        assert strategic["data"] == {"b": "2", "c": "3"}
        with pytest.raises(Conflict):
            await client.delete(CONFIG, "c", space, uid=str(uuid.uuid4()))
        await client.delete(CONFIG, "c", space, uid=made["metadata"]["uid"])
        with pytest.raises(NotFound):
            await client.get(CONFIG, "c", space)

    at(server, work)


def test_apply_owns_what_it_says_and_takes_back_what_it_no_longer_says(server: Server) -> None:
    async def work(at: Bench) -> None:
        client = at.client
        await client.apply(at.config("c", data={"a": "1", "b": "1"}))
        await client.patch(CONFIG, "c", at.namespace, {"data": {"other": "x"}})
        after = await client.apply(at.config("c", data={"a": "2"}))
        assert after["data"] == {"a": "2", "other": "x"}
        managers = {entry["manager"] for entry in after["metadata"]["managedFields"]}
        assert managers == {"unisono"}

    at(server, work)


def test_noes_have_their_names(server: Server) -> None:
    async def work(at: Bench) -> None:
        client = at.client
        with pytest.raises(Invalid) as invalid:
            await client.create(at.config("Not A Name"))
        assert invalid.value.causes[0].field == "metadata.name"
        with pytest.raises(BadRequest):
            await client.list(CONFIG, at.namespace, labels="a in (")
        await asyncio.to_thread(server.forget_history)
        past = {"resourceVersion": "1", "resourceVersionMatch": "Exact", "limit": "1"}
        with pytest.raises(Gone):
            await client.page(CONFIG, at.namespace, past)
        if server.name == "embedded":  # a real one remembers for itself what its storage forgot
            async with client.watch(CONFIG, at.namespace, resource_version="1") as events:
                with pytest.raises(Gone):
                    await anext(events)
        wrong = Access(server=server.url, authority=server.ca_file, login=Login(token="wrong"))
        async with HttpTransport(wrong, Credentials(wrong, clock=RealClock())) as transport:
            stranger = client_over(transport, clock=RealClock(), random_source=random.Random(1))
            with pytest.raises(Unauthorized):
                await stranger.get(CONFIG, "c", at.namespace)

    at(server, work)


def test_a_create_whose_answer_is_lost_happens_once(server: Server) -> None:
    async def work(at: Bench) -> None:
        class Losing:
            """Loses the first answer."""

            stream = at.wire.stream
            lost = False

            async def request(self, method: str, *asked: Any, **options: Any) -> Answer:
                answer = await at.wire.request(method, *asked, **options)
                if method == "POST" and not self.lost:
                    self.lost = True
                    raise Unreachable("lost", sent=True)
                return answer

        client = client_over(
            Losing(), clock=RealClock(), random_source=random.Random(1), ids=lambda: "the id"
        )
        made = await client.create(at.config("once"), repeat=True)
        assert made["metadata"]["annotations"]["unisono.dev/create-id"] == "the id"

    at(server, work)


def test_pages_are_one_list(server: Server) -> None:
    async def work(at: Bench) -> None:
        for number in range(7):
            await at.client.create(at.config(f"c{number}"))
        pages = [
            page
            async for page in at.client.pages(
                CONFIG, at.namespace, fields="metadata.name!=kube-root-ca.crt", limit=3
            )
        ]
        assert [len(page.items) for page in pages] == [3, 3, 1]
        assert len({page.resource_version for page in pages}) == 1
        assert pages[0].items[0]["kind"] == "ConfigMap"

    at(server, work)


def test_a_kind_of_the_users_own_is_found_by_discovery(server: Server) -> None:
    async def work(at: Bench) -> None:
        group = f"{at.namespace}.example.com"
        definition = {
            "apiVersion": DEFINITION.api_version,
            "kind": DEFINITION.kind,
            "metadata": {"name": f"gizmos.{group}"},
            "spec": {
                "group": group,
                "names": {"kind": "Gizmo", "plural": "gizmos"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {"x-kubernetes-preserve-unknown-fields": True},
                                    "status": {"x-kubernetes-preserve-unknown-fields": True},
                                },
                            }
                        },
                    }
                ],
            },
        }
        gizmo = {
            "apiVersion": f"{group}/v1",
            "kind": "Gizmo",
            "metadata": {"name": "g", "namespace": at.namespace},
            "spec": {"size": 3},
        }
        await at.client.create(definition)
        while True:
            try:
                await at.client.create(gizmo)
                break
            except KubeError:  # it takes a moment until it is served
                await asyncio.sleep(0.05)
        kind = Kind(f"{group}/v1", "Gizmo")
        status = {"status": {"seen": True}}
        written = await at.client.patch(kind, "g", at.namespace, status, subresource="status")
        assert (written["spec"], written["status"]) == ({"size": 3}, {"seen": True})
        await at.client.delete(DEFINITION, f"gizmos.{group}")

    at(server, work)


def test_pods_are_bound_evicted_and_heard(server: Server) -> None:
    async def work(at: Bench) -> None:
        client, space = at.client, at.namespace
        pod = await client.create(at.pod("p"))
        with pytest.raises(Conflict):
            await bind(client, "p", space, node="n1", uid=str(uuid.uuid4()))
        await bind(client, "p", space, node="n1", uid=pod["metadata"]["uid"])
        assert (await client.get(POD, "p", space))["spec"]["nodeName"] == "n1"
        with pytest.raises(Conflict):
            await bind(client, "p", space, node="n2")
        await evict(client, "p", space, uid=pod["metadata"]["uid"], grace_s=5)
        assert (await client.get(POD, "p", space))["metadata"]["deletionGracePeriodSeconds"] == 5
        with pytest.raises(NotFound):
            await log(client, "missing", space).__aenter__()
        await client.delete(POD, "p", space, grace_s=0)

    at(server, work)


def test_scale(server: Server) -> None:
    async def work(at: Bench) -> None:
        labels = {"app": "d"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        }
        await at.client.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "d", "namespace": at.namespace},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
            }
        )
        scaled = await scale(at.client, DEPLOYMENT, "d", at.namespace, replicas=3)
        assert scaled["spec"]["replicas"] == 3
        read = await at.client.get(DEPLOYMENT, "d", at.namespace)
        assert read["spec"]["replicas"] == 3

    at(server, work)


# --- caches -------------------------------------------------------------------------------------


def _told(made: Informer[Json]) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []

    def handler(delta: Delta[Json]) -> None:
        if delta.key.name.startswith("c"):  # and not kube-root-ca.crt
            told.append((delta.what, delta.key.name))

    made.on_change(handler)
    return told


@pytest.mark.parametrize("watch_list", [True, False])
def test_a_cache_follows(server: Server, watch_list: bool) -> None:
    async def work(at: Bench) -> None:
        client, space = at.client, at.namespace
        await client.create(at.config("c1", data={"node": "a"}))
        made = at.informer(
            indexes={"node": lambda each: [(each.get("data") or {}).get("node", "")]},
            watch_list=watch_list,
        )
        told = _told(made)
        async with running(made):
            assert made.reflector.uses_watch_list is watch_list
            await client.create(at.config("c2", data={"node": "a"}))
            await until(lambda: len(made.store.by("node", "a")) == 2)
            await client.patch(CONFIG, "c1", space, {"data": {"node": "b"}})
            await client.delete(CONFIG, "c2", space)
            await until(lambda: ("DELETED", "c2") in told)
            assert [each["metadata"]["name"] for each in made.store.by("node", "b")] == ["c1"]
        assert told == [
            ("ADDED", "c1"),
            ("ADDED", "c2"),
            ("MODIFIED", "c1"),
            ("DELETED", "c2"),
        ]
        assert made.errors == 0

    at(server, work)


def test_an_own_write_is_told_once(server: Server) -> None:
    async def work(at: Bench) -> None:
        made = at.informer()
        told = _told(made)
        async with running(made):
            written = await at.client.create(at.config("c1"))
            made.assume(written)
            assert made.store.get("c1", at.namespace) is not None
            made.assume(await at.client.patch(CONFIG, "c1", at.namespace, {"data": {"a": "b"}}))
            await until(lambda: made.store.unconfirmed == 0)
            await at.client.create(at.config("c2"))
            await until(lambda: ("ADDED", "c2") in told)
        assert told == [("ADDED", "c1"), ("MODIFIED", "c1"), ("ADDED", "c2")]

    at(server, work)


def test_what_happened_while_we_were_away_is_learnt_even_if_the_server_forgot_it(
    server: Server,
) -> None:
    async def work(at: Bench) -> None:
        other = at.client
        for name in ("c1", "c2", "c3"):
            await other.create(at.config(name))
        made = at.informer()
        told = _told(made)
        async with running(made):
            told.clear()
            access = Access(
                server=server.url, authority=server.ca_file, login=Login(token=server.token)
            )
            at.wire.unplug()
            async with HttpTransport(access, Credentials(access, clock=RealClock())) as transport:
                other = client_over(transport, clock=RealClock(), random_source=random.Random(2))
                await other.delete(CONFIG, "c1", at.namespace)
                await other.patch(CONFIG, "c2", at.namespace, {"data": {"a": "b"}})
                await other.create(at.config("c4"))
            await asyncio.to_thread(server.forget_history)
            at.wire.plug()
            await until(lambda: ("ADDED", "c4") in told)
            assert sorted(told) == [("ADDED", "c4"), ("DELETED", "c1"), ("MODIFIED", "c2")]
            listing = await at.client.list(CONFIG, at.namespace)
            assert _versions(listing.items) == _versions(made.store)
            # A real server keeps the recent past in memory, whatever its storage has forgotten.
            assert made.reflector.relists == (2 if server.name == "embedded" else 1)

    at(server, work)


def _versions(objects: Any) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in objects}


# --- leaders and events -------------------------------------------------------------------------


def test_a_leader_is_followed_by_another(server: Server) -> None:
    async def work(at: Bench) -> None:
        led: list[str] = []

        def candidate(name: str) -> Candidate:
            return Candidate(
                at.client,
                name,
                clock=at.clock,
                random_source=at.chance,
                namespace=at.namespace,
                terms=LeaseTimes(lease_s=3, renew_deadline_s=2, retry_s=0.2),
            )

        async def lead(name: str) -> None:
            async def work() -> None:
                led.append(name)
                await asyncio.sleep(1.0)

            await candidate(name).lead(work)

        async with asyncio.TaskGroup() as group:
            group.create_task(lead("one"))
            await until(lambda: led == ["one"])
            group.create_task(lead("two"))
        assert led == ["one", "two"]
        lease = await at.client.get(
            Kind("coordination.k8s.io/v1", "Lease"), "unisono", at.namespace
        )
        assert lease["spec"]["holderIdentity"] == ""
        assert lease["spec"]["leaseTransitions"] == 1

    at(server, work)


def test_events_are_written_and_counted(server: Server) -> None:
    async def work(at: Bench) -> None:
        pod = await at.client.create(at.pod("p"))
        recorder = Recorder(at.client, clock=at.clock, instance="one")
        for _ in range(3):
            recorder.record(pod, "Warning", "Preempted", "by q", related=pod)
        await recorder.flush()
        assert recorder.dropped == 0
        listing = await at.client.list(
            Kind("v1", "Event"), at.namespace, fields="involvedObject.name=p,reason=Preempted"
        )
        (event,) = listing.items
        assert (event["count"], event["message"], event["type"]) == (3, "by q", "Warning")
        assert event["related"]["name"] == "p"
        await at.client.delete(POD, "p", at.namespace, grace_s=0)

    at(server, work)
