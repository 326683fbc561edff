"""A certificate for webhooks over the years: made once, trusted before it is shown, renewed."""

from __future__ import annotations

import asyncio
import base64
import copy
import io

import pytest

from unisono.control.jobs.priority_class_rules import CLASS_RULES
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kube.errors import Conflict, NotFound, Status
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.net.http.pages import PageRequest
from unisono.runtime.log import Journal
from unisono.runtime.serving_certificate import proof_in
from unisono.runtime.webhook.configuration import KINDS, NAME, WEBHOOK, objects
from unisono.runtime.webhook.rules import TENANCY
from unisono.runtime.webhook.serving import Webhook

DAY = 86_400.0
START = 1_800_000_000.0


class Stored:
    """The few objects that a webhook reads and writes."""

    def __init__(self) -> None:
        made = objects("home", {}, {"mutating"})
        self.objects = {(one["kind"], one["metadata"]["name"]): one for one in made}
        self.writes: list[str] = []
        self.is_first = True

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Json:
        found = self.objects.get((kind.kind, name))
        if found is None:
            raise NotFound(Status(code=404, message=f"{name} is not there"))
        return copy.deepcopy(found)

    async def update(self, new: Json) -> Json:
        if not self.is_first:
            raise Conflict(Status(code=409, message="another replica was first"))
        self.writes.append(new["kind"])
        self.objects[new["kind"], new["metadata"]["name"]] = copy.deepcopy(new)
        return new

    @property
    def secret(self) -> Json:
        return self.objects["Secret", WEBHOOK]

    @property
    def trusted(self) -> bytes:
        one, *_ = self.objects[KINDS["mutating"].kind, NAME]["webhooks"]
        return base64.b64decode(one["clientConfig"]["caBundle"])


class Clock:
    """Nothing waits in these tests."""

    def now(self) -> float:
        return START

    def monotonic(self) -> float:
        return START

    async def sleep(self, seconds: float) -> None:
        raise AssertionError


def webhook(stored: Stored) -> Webhook:
    return Webhook(stored, "home", Clock(), Journal(io.StringIO(), lambda: START))  # type: ignore[arg-type]  # two of its calls


def test_a_certificate_is_made_once_and_found_by_the_others() -> None:
    async def work() -> None:
        stored = Stored()
        first, second = webhook(stored), webhook(stored)
        await first.step(START)
        assert stored.writes == ["Secret", "MutatingWebhookConfiguration"]
        await second.step(START + DAY)
        await first.step(START + 200 * DAY)
        assert len(stored.writes) == 2
        assert first.is_trusted.is_set()
        assert second.is_trusted.is_set()

    asyncio.run(work())


def test_it_is_renewed_in_time_and_the_old_one_is_trusted_meanwhile() -> None:
    async def work() -> None:
        stored = Stored()
        one = webhook(stored)
        await one.step(START)
        before = proof_in(stored.secret)
        assert before is not None
        await one.step(START + 260 * DAY)
        after = proof_in(stored.secret)
        assert after is not None
        assert after.certificate != before.certificate
        assert after.trusted.endswith(before.trusted)
        assert stored.trusted == after.trusted
        await one.step(START + 520 * DAY)
        last = proof_in(stored.secret)
        assert last is not None
        assert before.trusted not in last.trusted

    asyncio.run(work())


def test_the_second_replica_shows_nothing_of_its_own() -> None:
    async def work() -> None:
        stored = Stored()
        stored.is_first = False
        one = webhook(stored)
        with pytest.raises(Conflict):
            await one.step(START)
        assert not one.is_trusted.is_set()

    asyncio.run(work())


@pytest.mark.parametrize("wrong", ["bm9uc2Vuc2U=", "?", None])
def test_what_is_not_a_certificate_is_replaced(wrong: str | None) -> None:
    async def work() -> None:
        stored = Stored()
        one = webhook(stored)
        await one.step(START)
        if wrong is None:
            del stored.secret["data"]["tls.crt"]
        else:
            stored.secret["data"]["tls.crt"] = wrong
        await one.step(START)
        found = proof_in(stored.secret)
        assert found is not None
        assert found.certificate.startswith(b"-----BEGIN")
        assert stored.trusted == found.trusted

    asyncio.run(work())


def test_the_rules_of_priority_classes_are_read_from_what_the_leader_wrote() -> None:
    async def work() -> None:
        stored = Stored()
        one = webhook(stored)
        assert await one.class_rules() == ()
        data = {"0.names": "urgent\nsoon", "0.users": "ada", "1.names": "*"}
        stored.objects["ConfigMap", CLASS_RULES] = {"kind": "ConfigMap", "data": data}
        assert await one.class_rules() == (
            PriorityClassRule(names=("urgent", "soon"), users=("ada",)),
            PriorityClassRule(names=("*",)),
        )

    asyncio.run(work())


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", TENANCY, b"no review", 400),
        ("GET", TENANCY, b"", 405),
        ("POST", "/elsewhere", b"{}", 404),
    ],
)
def test_only_reviews_are_answered(method: str, path: str, body: bytes, code: int) -> None:
    request = PageRequest(method=method, path=path, query={}, headers={}, body=body)
    assert asyncio.run(webhook(Stored())._review(request)).code == code
