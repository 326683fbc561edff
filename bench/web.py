"""What the web page costs: its first paint, how soon it follows, what is sent, what serving takes.

The page is the real one, of a cluster on paper. In the browser it is measured with Chromium, if
there is one: first paint and page drawn since the navigation began, and from a change being heard
of to it being on the screen. Serving is measured as processor time of this process, with visitors
in another one, while workloads, pods and nodes change all the time; the cost of the changes is
subtracted.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import perf_counter, process_time

from bench.harness import Finding, Note, Scale, figures, row, target
from tools.browser import Tab, browsing, find_browser
from tools.sample.site import TOKEN, Served, served
from tools.sample.world import Sample, sample
from unisono.kube.mapping import POD
from unisono.monitor.cache import NODE, WORKLOAD
from unisono.runtime.clock import seconds_now

SIZES: dict[Scale, tuple[int, int]] = {
    "full": (1_000, 10_000),
    "quick": (100, 1_000),
    "tiny": (10, 50),
}
SAMPLES: dict[Scale, int] = {"full": 7, "quick": 3, "tiny": 1}
SERVED_S: dict[Scale, float] = {"full": 10.0, "quick": 1.5, "tiny": 0.2}
# Until all is sent once, which is not what is measured.
SETTLES_S: dict[Scale, float] = {"full": 2.0, "quick": 1.0, "tiny": 0.2}
PAGES = ("/", "/workloads", "/map", "/timeline", "/nodes", "/queues")
ASKED = ("overview", "workloads&state=waits", "workloads&q=pretrain", "map", "timeline&span=21600")
SERVED: dict[Scale, int] = {"full": len(ASKED), "quick": 3, "tiny": 1}
VISITORS = 4  # of one page, at the same time
CHANGES_PER_S = 20
_DRAWN = "document.body.dataset.drawn && !document.querySelector('.waiting')"
# It is noted a moment after the frame in which it happened.
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_MARK = "performance.getEntriesByName('drawn')[0].startTime"
_APPEARS = """new Promise((resolve) => {
  const look = () => { if (document.querySelector('[data-key="KEY"]')) resolve(Date.now()); };
  const page = document.getElementById('page');
  new MutationObserver(look).observe(page, { childList: true, subtree: true });
  look();
})"""
# Reads and throws away what is sent to some visitors, as fast as it comes.
_VISITORS = """
import asyncio, sys
async def visit(port, page, token):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = (f"GET /live?page={page} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept-Encoding: gzip",
             f"Authorization: Bearer {token}", "", "")
    writer.write("\\r\\n".join(lines).encode())
    while await reader.read(65536):
        pass
async def main(port, page, token, count):
    await asyncio.gather(*(visit(port, page, token) for _ in range(count)))
asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


def measure(scale: Scale) -> Iterator[Finding]:
    """Measure in a browser, and then without one."""
    nodes, gangs = SIZES[scale]
    shown = sample(seconds_now(), nodes=nodes, gangs=gangs)
    if scale != "full":
        yield Note(f"a browser is not started for a {scale} run")
    elif find_browser() is None:
        yield Note("there is no Chromium here, so nothing was measured in a browser")
    else:
        yield from asyncio.run(_in_browser(shown, scale))
    yield from asyncio.run(_serving(shown, scale))


# ---- in the browser ------------------------------------------------------------------------------


async def _in_browser(shown: Sample, scale: Scale) -> list[Finding]:
    found: list[Finding] = []
    of, count = "workloads", SIZES[scale][1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with served(shown) as there, browsing(Path(folder)) as tab:
            await tab.call("Network.setCacheDisabled", cacheDisabled=True)
            await tab.call("Performance.enable", timeDomain="threadTicks")
            weights: dict[str, float] = {}
            for page in PAGES:
                painted, drawn, computed = [], [], []
                for _ in range(SAMPLES[scale]):
                    tab.bytes = 0
                    await tab.go(there.at(page))
                    await tab.until(_DRAWN)
                    painted.append(await tab.until(_PAINT) / 1000)
                    drawn.append(await tab.run(_MARK) / 1000)
                    computed.append(await _computed(tab))
                    weights[page] = tab.bytes
                paint = row(f"first paint of {page}", count, of, painted, "ms")
                found += [paint, row(f"{page} drawn", count, of, drawn, "ms")]
                found.append(row(f"the browser computes for {page}", count, of, computed, "ms"))
                if page == "/":
                    found.append(target("first paint", paint, 500, better="below"))
            heaviest = max(weights, key=lambda one: weights[one])
            weight = figures(f"sent for {heaviest}", count, of, [weights[heaviest]], "B")
            limit = target("page weight", weight, 1_500_000, better="below")
            found += [weight, limit]
            late = [await _lateness(tab, there, shown, at) for at in range(3 * SAMPLES[scale])]
            update = row("an update reaches the page", count, of, late, "ms")
            found += [update, target("update", update, 1_000, better="below")]
    return found


async def _computed(tab: Tab) -> float:
    """Return how long the page has computed, in seconds: a figure for a machine that is busy."""
    metrics = (await tab.call("Performance.getMetrics"))["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


async def _lateness(tab: Tab, there: Served, shown: Sample, number: int) -> float:
    """Return how long a change takes to the screen, in seconds."""
    if number == 0:
        await tab.go(there.at("/map"))
        await tab.until(_DRAWN)
    name = f"newcomer-{number}"
    script = _APPEARS.replace("KEY", name)
    appears = asyncio.ensure_future(tab.run(script))
    await asyncio.sleep(0.3 + 0.07 * (number % 7))  # not always at the same moment of a pause
    some = next(iter(shown.objects[NODE].values()))
    node = {**some, "metadata": {**some["metadata"], "name": name, "uid": name}}
    began = seconds_now()
    there.cache.observe(NODE, None, node)
    return float(await appears) / 1000 - began


# ---- serving -------------------------------------------------------------------------------------


async def _serving(shown: Sample, scale: Scale) -> list[Finding]:
    found: list[Finding] = []
    async with served(shown) as there:
        seconds = SERVED_S[scale]
        alone = await _cost(there, shown, "", 0.0, seconds)
        for page in ASKED[: SERVED[scale]]:
            busy = await _cost(there, shown, page, SETTLES_S[scale], seconds)
            share = max(0.0, busy - alone) / VISITORS * 100
            measured = figures(f"serving {page}", SIZES[scale][1], "workloads", [share], "%")
            found += [measured, target("a page", measured, 5, better="below")]
    text = f"{VISITORS} visitors of each page, {CHANGES_PER_S} changes a second"
    return [*found, Note(f"{text}; % of one processor for each visitor")]


async def _cost(there: Served, shown: Sample, page: str, settles: float, seconds: float) -> float:
    """Return the part of a processor that this process takes; without a page nothing visits."""
    async with _visited(there, page, settles):
        before, began = process_time(), perf_counter()
        for at in range(int(seconds * CHANGES_PER_S)):
            _change(there, shown, at)
            await asyncio.sleep(1 / CHANGES_PER_S)
        return (process_time() - before) / (perf_counter() - began)


@contextlib.asynccontextmanager
async def _visited(there: Served, page: str, settles: float) -> AsyncIterator[None]:
    if not page:
        yield
        return
    port = there.address.rstrip("/").rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _VISITORS, port, page, TOKEN, str(VISITORS))
    )
    try:
        await asyncio.sleep(settles)
        yield
    finally:
        process.kill()
        await process.wait()


def _change(there: Served, shown: Sample, number: int) -> None:
    """Let something happen: a pod becomes another, a gang begins to wait, another is gone."""
    pods = list(shown.objects[POD].values())
    pod = pods[number * 7 % len(pods)]
    phase = "Running" if number % 2 else "Succeeded"
    there.cache.observe(POD, pod, {**pod, "status": {**pod["status"], "phase": phase}})
    gang = next(iter(shown.objects[WORKLOAD].values()))
    name = f"newcomer-{number % 50}"
    newcomer = {
        **gang,
        "metadata": {**gang["metadata"], "name": name, "uid": name},
        "status": {},
    }
    is_new = number // 50 % 2 == 0
    there.cache.observe(WORKLOAD, None if is_new else newcomer, newcomer if is_new else None)
