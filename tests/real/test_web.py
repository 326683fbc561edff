"""The web page in a real browser, on a cluster that runs: every page shows what the API has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.test_monitoring import CLUSTER, JOB

pytestmark = pytest.mark.real


class Cluster:
    """One that runs, and a browser to look at it."""

    def __init__(self, folder: Path, web: str, browser: str) -> None:
        self.folder = folder
        self.web = web
        self.browser = browser

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

    def look_at(self, page: str, width: int = 1280) -> str:
        """Return the document of a page as it is after a while."""
        done = subprocess.run(
            [
                self.browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--window-size={width},900",
                "--virtual-time-budget=6000",
                "--enable-logging=stderr",
                f"--user-data-dir={self.folder / 'browser'}",
                "--dump-dom",
                f"{self.web}{page}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not [line for line in done.stderr.splitlines() if "Uncaught" in line]
        return done.stdout


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return one where a gang runs and another waits."""
    browser = shutil.which("chromium")
    if browser is None:
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
        made = Cluster(folder, web, browser)
        objects = "---".join((CLUSTER, JOB.replace("NAME", "j1"), JOB.replace("NAME", "j2")))
        made.unisono("apply", "-f", "-", text=objects)
        yield made
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_the_overview_shows_gpus_and_who_is_next(cluster: Cluster) -> None:
    page = cluster.look_at("")
    assert "<b>16</b><span>GPUs</span>" in page
    assert "<b>6</b><span>held by jobs</span>" in page
    assert re.search(r"default/job-j2-\w+</a>.*queue cq may use 2 nvidia.com/gpu more", page)
    assert re.search(r"live · ", page)


def test_queues_workloads_and_nodes_have_their_pages(cluster: Cluster) -> None:
    queues = cluster.look_at("/queues")
    assert "6 of 8 GPUs" in queues
    workloads = cluster.look_at("/workloads")
    assert "2 shown; 1 wait, 1 run, 0 are over" in workloads
    nodes = cluster.look_at("/nodes")
    assert nodes.count('class="node"') == 2
    assert len(re.findall(r'aria-label="GPU \d: default/job-j1', nodes)) == 6


def test_a_gang_has_a_page_of_its_own(cluster: Cluster) -> None:
    (name,) = re.findall(r"^(job-j2-\w+)", cluster.unisono("get", "workloads"), re.MULTILINE)
    page = cluster.look_at(f"/workloads/default/{name}", width=390)
    assert "4 nvidia.com/gpu short" in page
    assert "What would change it: " in page
    assert "<b>has quota</b>not yet" in page


def test_without_the_token_there_is_nothing_to_see(cluster: Cluster) -> None:
    stranger = Cluster(cluster.folder, cluster.web.partition("#")[0], cluster.browser)
    page = stranger.look_at("")
    assert "<h2>Sign in</h2>" in page
    assert "held by jobs" not in page
