"""The page acts, in a browser and by keyboard: on gangs, queues, nodes; never without the right."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.web.acting import JOB, NODE, WORKLOAD, Acting, acting, job, until
from tools.browser import Tab, browsing, find_browser
from unisono.kube.errors import NotFound
from unisono.kube.mapping import Kind

pytestmark = pytest.mark.real

POLICY = Kind("unisono.dev/v1", "Policy")
TEXT = "document.getElementById('page').innerText"
GO = "document.querySelector('dialog button[type=submit]:not(:disabled)')"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    if find_browser() is None:
        pytest.skip("there is no Chromium here (Debian: chromium)")
    with acting(tmp_path_factory.mktemp("acting")) as made:
        made.workload_of("runs")
        yield made


@pytest.fixture
def waits(cluster: Acting) -> Iterator[str]:
    """Return the name of the Workload of a job that waits."""
    cluster.run(lambda api: api.create(job("waits")))
    yield str(cluster.workload_of("waits")["metadata"]["name"])
    with contextlib.suppress(NotFound):
        cluster.run(lambda api: api.delete(JOB, "waits", "default"))
    until(lambda: _is_gone(cluster, "waits"))


def _is_gone(cluster: Acting, name: str) -> bool:
    with contextlib.suppress(NotFound):
        cluster.get(JOB, name)
        return False
    return True


def look(folder: Path, story: Callable[[Tab], Awaitable[None]]) -> None:
    """Tell a story in a browser, in which nothing goes wrong."""

    async def main() -> None:
        async with browsing(folder) as tab:
            await story(tab)
            assert not tab.errors

    asyncio.run(main())


async def _open(tab: Tab, cluster: Acting, user: str, page: str) -> None:
    await tab.go(f"{cluster.address}#token={cluster.tokens[user]}{page}")
    await tab.until("document.querySelector('.act [data-action]')")


async def _press(tab: Tab, action: str) -> None:
    """Press the button of an action, by keyboard."""
    button = f"document.querySelector('[data-action={action}]:not(:disabled)')"
    await tab.until(button)
    await tab.run(f"{button}.focus()")
    await tab.press("Enter")
    await tab.until("document.querySelector('dialog[open]')")


async def _confirm(tab: Tab, done: str) -> str:
    """Wait for what follows, confirm it by keyboard, and return what the dialog said."""
    await tab.until(GO)
    said = str(await tab.run("document.querySelector('dialog').innerText"))
    await tab.run(f"{GO}.focus()")
    await tab.press("Enter")
    await tab.until("!document.querySelector('dialog')")
    await tab.until(f"document.getElementById('told').textContent === {json.dumps(done)}")
    return said


def test_a_gang_is_held_released_reprioritised_and_cancelled(
    cluster: Acting, waits: str, tmp_path: Path
) -> None:
    async def story(tab: Tab) -> None:
        await tab.look(390, 844)  # on a phone, and nothing is cut off there
        await _open(tab, cluster, "alice", f"/workloads/default/{waits}")

        await _press(tab, "hold")
        said = await _confirm(tab, "job/waits is on hold")
        assert "It stays pending until it is released" in said
        assert "kubectl annotate -n default job/waits unisono.dev/hold=user" in said
        await tab.until("document.querySelector('[data-action=release]')")
        await tab.until(f"{TEXT}.includes('on hold')")

        await _press(tab, "release")
        await _confirm(tab, "job/waits is released")
        await tab.until("document.querySelector('[data-action=hold]')")

        await _press(tab, "priority")
        assert await tab.run("document.activeElement.id") == "act-class"
        assert await tab.run(f"{GO} === null")
        await tab.run(
            "(() => { const one = document.activeElement; one.value = 'high';"
            " one.dispatchEvent(new Event('change')); })()"
        )
        await tab.until(GO)
        assert await tab.run("document.documentElement.scrollWidth") <= 390
        said = await _confirm(tab, "job/waits has the priority class high")
        assert "It starts at once." in said
        assert "Is evicted and waits again: default/runs." in said
        await tab.until(f"{TEXT}.includes('1,000')")

        await _press(tab, "cancel")
        assert await tab.run("document.activeElement.textContent") == "Back"
        said = await _confirm(tab, "job/waits is cancelled")
        assert "It cannot be undone." in said

    look(tmp_path, story)
    until(lambda: _is_gone(cluster, "waits"))


def test_without_the_right_buttons_say_which_one_is_missing(
    cluster: Acting, waits: str, tmp_path: Path
) -> None:
    async def story(tab: Tab) -> None:
        await _open(tab, cluster, "bob", f"/workloads/default/{waits}")
        buttons = "[...document.querySelectorAll('[data-action]')]"
        assert await tab.run(f"{buttons}.every((one) => one.disabled)")
        text = await tab.run(TEXT)
        assert "you lack the permission to patch jobs.batch in namespace default" in text
        assert "you lack the permission to delete jobs.batch in namespace default" in text
        # What a script of the page could still send is refused as well.
        body = {"target": "workload", "action": "cancel", "namespace": "default", "name": waits}
        asked = (
            "fetch('/actions/preview', {method: 'POST', body: " + json.dumps(json.dumps(body)) + ","
            "headers: {'Content-Type': 'application/json', Authorization: 'Bearer b-token'}})"
            ".then((answer) => answer.json()).then((found) => found.refusal)"
        )
        assert "you lack the permission to delete jobs.batch" in await tab.run(asked)

    look(tmp_path, story)
    assert cluster.get(WORKLOAD, waits)


def test_escape_leaves_everything_as_it_is(cluster: Acting, waits: str, tmp_path: Path) -> None:
    async def story(tab: Tab) -> None:
        await _open(tab, cluster, "alice", f"/workloads/default/{waits}")
        await _press(tab, "cancel")
        await tab.until(GO)
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog')")
        assert await tab.run("document.activeElement.dataset.action") == "cancel"

    look(tmp_path, story)
    assert "deletionTimestamp" not in cluster.get(JOB, "waits")["metadata"]


def test_a_gang_moves_to_another_queue(cluster: Acting, waits: str, tmp_path: Path) -> None:
    async def story(tab: Tab) -> None:
        await _open(tab, cluster, "alice", f"/workloads/default/{waits}")
        await _press(tab, "queue")
        await tab.run(
            "(() => { const one = document.activeElement; one.value = 'other';"
            " one.dispatchEvent(new Event('change')); })()"
        )
        said = await _confirm(tab, "job/waits is in queue other")
        assert "It starts at once." in said
        assert "kueue.x-k8s.io/queue-name=other" in said
        await tab.until(f"{TEXT}.includes('running')")

    look(tmp_path, story)


def test_queues_are_stopped_and_resumed(cluster: Acting, tmp_path: Path) -> None:
    async def story(tab: Tab) -> None:
        await tab.go(f"{cluster.address}#token={cluster.tokens['owner']}/queues")
        await tab.until("document.querySelector('[data-key=\"spare\"] summary')")
        await tab.run("document.querySelector('[data-key=\"spare\"] summary').click()")
        await _press(tab, "stop")
        assert "Nothing of queue spare is admitted" in await _confirm(tab, "queue spare is stopped")
        await _press(tab, "resume")
        await _confirm(tab, "queue spare admits again")
        await tab.until("document.querySelector('[data-action=stop]')")

    look(tmp_path, story)


def _free_node(cluster: Acting) -> str:
    """Return the name of a node without pods."""
    used = {one["spec"].get("nodeName") for one in cluster.pods()}
    nodes = cluster.run(lambda api: api.list(NODE)).items
    names = sorted(one["metadata"]["name"] for one in nodes)
    return str(next(one for one in reversed(names) if one not in used))


def test_nodes_are_closed_opened_drained_and_reserved(cluster: Acting, tmp_path: Path) -> None:
    name = _free_node(cluster)
    taint = {"key": "unisono.dev/quarantine", "value": "mine", "effect": "NoSchedule"}

    async def story(tab: Tab) -> None:
        await _open(tab, cluster, "owner", f"/nodes/{name}")
        await _press(tab, "cordon")
        assert "It gets no new pods." in await _confirm(tab, f"node {name} is cordoned")
        await _press(tab, "uncordon")
        await _confirm(tab, f"node {name} takes pods again")
        await _press(tab, "drain")
        said = await _confirm(tab, f"node {name} is drained")
        assert f"kubectl drain {name}" in said
        await _press(tab, "uncordon")
        await _confirm(tab, f"node {name} takes pods again")
        changes = {"spec": {"taints": [taint]}}
        await asyncio.to_thread(cluster.run, lambda api: api.patch(NODE, name, "", changes))
        await _press(tab, "lift-quarantine")
        said = await _confirm(tab, f"node {name} is out of quarantine")
        assert "The quarantine is for mine." in said
        await _press(tab, "reserve")
        said = str(await tab.run("document.querySelector('dialog').innerText"))
        await tab.until(GO)
        done = "document.getElementById('told').textContent"
        await tab.run(f"{GO}.focus()")
        await tab.press("Enter")
        await tab.until(f"({done} || '').startsWith('node {name} is reserved from ')")

    look(tmp_path, story)
    (policy,) = cluster.run(lambda api: api.list(POLICY)).items
    assert policy["reservations"][0]["nodes"] == [name]


@pytest.mark.parametrize("page", ["/queues", "NODE"])
def test_readers_get_no_button_that_would_fail(cluster: Acting, page: str, tmp_path: Path) -> None:
    """A button of an action that the API would refuse is disabled, and the reason stands there."""

    async def story(tab: Tab) -> None:
        where = f"/nodes/{_free_node(cluster)}" if page == "NODE" else page
        await tab.go(f"{cluster.address}#token={cluster.tokens['bob']}{where}")
        await tab.until("document.querySelector('.act')")
        await tab.run("document.querySelectorAll('.act summary').forEach((one) => one.click())")
        await tab.until("document.querySelector('[data-action]')")
        buttons = "[...document.querySelectorAll('[data-action]')]"
        assert await tab.run(f"{buttons}.every((one) => one.disabled)")
        assert "you lack the permission to" in await tab.run(TEXT)

    look(tmp_path, story)


def test_korean_dialogs_say_the_same(cluster: Acting, waits: str, tmp_path: Path) -> None:
    async def story(tab: Tab) -> None:
        await tab.go(cluster.address)
        await tab.run("localStorage.setItem('unisono-language', 'ko')")
        await _open(tab, cluster, "alice", f"/workloads/default/{waits}")
        await _press(tab, "cancel")
        await tab.until(GO)
        said = str(await tab.run("document.querySelector('dialog').innerText"))
        assert "job/waits 취소" in said
        assert "되돌릴 수 없다." in said
        assert "unisono delete job/waits -n default" in said  # a command has no language
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog')")
        await _press(tab, "hold")
        await _confirm(tab, "job/waits 보류됨")

    look(tmp_path, story)
    assert cluster.get(JOB, "waits")["metadata"]["annotations"]["unisono.dev/hold"] == "user"
