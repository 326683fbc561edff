"""The web page in a real browser, on a cluster that runs: every page shows what the API has."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_monitoring import CLUSTER, JOB
from tools.browser import Tab, browsing, find_browser

pytestmark = pytest.mark.real

TEXT = "document.getElementById('page').innerText"


class Cluster:
    """One that runs."""

    def __init__(self, folder: Path, web: str) -> None:
        self.folder = folder
        self.web = web

    def unisono(self, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "unisono", *arguments],
            env={**os.environ, "UNISONO_DATA_DIR": str(self.folder / "data")},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def look(self, story: Callable[[Tab], Awaitable[None]]) -> None:
        """Tell a story in a browser, in which nothing goes wrong."""

        async def main() -> None:
            async with browsing(self.folder) as tab:
                await story(tab)
                assert not tab.errors

        asyncio.run(main())

    async def open(self, tab: Tab, page: str) -> str:
        """Open a page; return its text."""
        await tab.go(f"{self.web}{page}")
        await tab.until("document.body.dataset.drawn && !document.querySelector('.waiting')")
        return str(await tab.run(TEXT))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return one where a gang runs and another waits."""
    if find_browser() is None:
        pytest.skip("there is no Chromium here (Debian: chromium)")
    folder = tmp_path_factory.mktemp("web")
    process = subprocess.Popen(
        [sys.executable, "-m", "unisono", "up", "--nodes", "2xg6e.48xlarge"],
        env={**os.environ, "UNISONO_DATA_DIR": str(folder / "data")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        web = ""
        for line in process.stdout:
            if line.startswith("web"):
                web = line.split()[1]
            if line.startswith("ready"):
                break
        made = Cluster(folder, web)
        objects = "---".join((CLUSTER, JOB.replace("NAME", "j1"), JOB.replace("NAME", "j2")))
        made.unisono("apply", "-f", "-", text=objects)
        yield made
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_pages_show_gpus_queues_and_why_workloads_wait(cluster: Cluster) -> None:
    async def story(tab: Tab) -> None:
        await cluster.open(tab, "")
        await tab.until(f"{TEXT}.includes('6 in use')")
        await tab.until(f"{TEXT}.includes('queue cq may use 2 GPUs more')")
        overview = await tab.run(TEXT)
        assert "16 GPUs on 2 nodes" in overview
        assert await tab.run("document.getElementById('live').textContent") == "live"
        assert "6 of 8" in await cluster.open(tab, "/queues")
        workloads = await cluster.open(tab, "/workloads")
        assert "1 running, 1 waiting, 0 finished" in workloads

    cluster.look(story)


def test_a_gang_says_the_same_as_why(cluster: Cluster) -> None:
    (name,) = re.findall(r"^(job-j2-\w+)", cluster.unisono("get", "workloads"), re.MULTILINE)
    why: dict[str, Any] = json.loads(cluster.unisono("why", f"workload/{name}", "-o", "json"))

    async def story(tab: Tab) -> None:
        await tab.look(390, 844)
        page = await cluster.open(tab, f"/workloads/default/{name}")
        for fact in why["facts"]:
            if fact["fact"] not in ("Planned", "Expected"):
                assert fact["says"].replace("nvidia.com/gpu", "GPUs") in page
        assert "To change that" in page
        assert f"Position {why['position']['place']} of {why['position']['of']}" in page

    cluster.look(story)


def test_nodes_show_their_pods_and_problems(cluster: Cluster) -> None:
    nodes = json.loads(cluster.unisono("get", "nodes", "-o", "json"))["items"]
    names = sorted(one["metadata"]["name"] for one in nodes)

    async def story(tab: Tab) -> None:
        await cluster.open(tab, "/map")
        assert await tab.run("document.querySelectorAll('.cells i[data-holder]').length") == 6
        keys = "[...document.querySelectorAll('.map li')].map((one) => one.dataset.key)"
        assert sorted(await tab.run(keys)) == names
        listed = await cluster.open(tab, "/nodes")
        assert all(name in listed for name in names)
        assert "g6e.48xlarge" in await cluster.open(tab, f"/nodes/{names[0]}")

    cluster.look(story)


def test_what_is_done_appears_at_once_and_is_told_later(cluster: Cluster) -> None:
    async def story(tab: Tab) -> None:
        await cluster.open(tab, "/workloads?q=j3")
        cluster.unisono("apply", "-f", "-", text=JOB.replace("NAME", "j3"))
        await tab.until(f"{TEXT}.includes('j3')")
        cluster.unisono("delete", "job", "j3")
        await tab.until(f"{TEXT}.includes('No match')")
        await cluster.open(tab, "/timeline?span=3600")
        await tab.until(f"{TEXT}.includes('cq')")  # lanes are drawn when they come into view
        await tab.until("document.querySelector('.bar')")
        report = await cluster.open(tab, "/reports?days=1")
        assert "GPU-HOURS" in report.upper()
        names = "[...document.querySelectorAll('[data-format]')].map((one) => one.dataset.format)"
        assert await tab.run(names) == ["html", "csv", "json", "md"]
        csv = (
            "fetch('/report/csv?since=0&until=1000', {headers: {Authorization: "
            "`Bearer ${sessionStorage.getItem('unisono-token')}`}}).then((one) => one.text())"
        )
        assert (await tab.run(csv)).startswith("namespace,name,")

    cluster.look(story)


def test_without_the_token_there_is_nothing_to_see(cluster: Cluster) -> None:
    async def story(tab: Tab) -> None:
        await tab.go(cluster.web.partition("#")[0])
        await tab.until("document.getElementById('token')")
        assert "in use" not in await tab.run("document.body.outerHTML")

    cluster.look(story)
