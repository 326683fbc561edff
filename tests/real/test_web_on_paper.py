"""Every page in a real browser, of a cluster on paper: content, keys, names, colours, weight."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest

from tests.monitor import objects
from tools.browser import Tab, browsing, find_browser
from tools.sample.site import TOKEN, Served, served
from tools.sample.world import Sample, sample
from tools.screenshots import MOST_BYTES, NOW, PICTURES, a_gang, show, take
from unisono.monitor.cache import NODE, WORKLOAD

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        find_browser() is None, reason="there is no Chromium here (Debian: chromium)"
    ),
]

CHECKS = Path(__file__).with_name("accessible.js")
PAGES = (
    *("/", "/queues", "/workloads", "/workloads?q=none-such", "GANG", "RUNNING", "/map"),
    *("/map?colour=busy", "/map?colour=celsius", "/map?colour=left"),
    *("/timeline", "/timeline?by=node", "/timeline?view=table", "/nodes", "NODE", "/reports"),
    "/alerts",
    *("/none", "SIGN-IN"),
)
# Texts that are cut off, and tables that have to be moved sideways to be read.
CLIPPED = """
[...document.querySelectorAll("p, b, .chip, dd, td.long, .scroll")]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .filter((one) => getComputedStyle(one).display !== "inline")
  .filter((one) => getComputedStyle(one).textOverflow !== "ellipsis")
  .map((one) => one.getAttribute("aria-label") || one.textContent.slice(0, 80))
  .concat([...document.querySelectorAll("#nav a span")]
    .filter((one) => getComputedStyle(one).clipPath === "none")
    .filter((one) => one.scrollWidth > one.closest("a").clientWidth)
    .map((one) => one.textContent))"""
Story = Callable[[Tab, Served], Awaitable[None]]


def run(story: Story, folder: Path, shown: Sample | None = None) -> None:
    """Run a story in a browser; its pages may log no error and ask no other server."""

    async def main() -> None:
        async with served(shown or sample(NOW)) as there, browsing(folder) as tab:
            await tab.call("Emulation.setTimezoneOverride", timezoneId="UTC")
            await story(tab, there)
            assert not tab.errors
            foreign = [one for one in tab.addresses if not one.startswith(there.address)]
            assert not [one for one in foreign if one != "about:blank"]

    asyncio.run(main())


def place(there: Served, page: str) -> str:
    there.dashboard.refresh()
    if page == "GANG":
        return a_gang(there)
    if page == "RUNNING":
        one = next(one for one in there.dashboard.running if one.pods > 1 and one.ready)
        return f"/workloads/{one.namespace}/{one.name}"
    return f"/nodes/{next(iter(there.dashboard.nodes()))}" if page == "NODE" else page


@pytest.mark.parametrize(
    ("width", "colours", "language"),
    [
        *((1280, "light", "en"), (1280, "dark", "en"), (390, "light", "en"), (390, "dark", "en")),
        *((1280, "dark", "ko"), (390, "light", "ko")),
    ],
)
def test_every_page_is_accessible(
    width: int, colours: Literal["light", "dark"], language: str, tmp_path: Path
) -> None:
    async def story(tab: Tab, there: Served) -> None:
        await tab.look(width, 900, colours=colours)
        await tab.go(there.address)
        await tab.run(f"localStorage.setItem('unisono-language', '{language}')")
        found: dict[str, Any] = {}
        for page in PAGES:
            if page == "SIGN-IN":
                await tab.run("sessionStorage.clear()")
                await tab.go(there.address)
                await tab.until("document.getElementById('token')")
            else:
                await show(tab, there, place(there, page))
            assert await tab.run("document.documentElement.lang") == language
            assert await tab.run("document.documentElement.scrollWidth") <= width, page
            if await tab.run(CLIPPED):
                found[page] = await tab.run(CLIPPED)
            wrong = found.get(page) or await tab.run(CHECKS.read_text(encoding="utf-8"))
            if wrong:
                found[page] = wrong
        assert not found

    run(story, tmp_path)


def test_pages_say_what_the_board_says(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        board = there.dashboard
        await show(tab, there, "/")
        text = await tab.run("document.getElementById('page').innerText")
        held = sum(row["held"] for row in board.nodes().values())
        assert f"{held} in use" in text
        assert f"waiting\n{len(board.waiting)}" in text
        await show(tab, there, "/workloads?state=waits")
        rows = await tab.run(
            "[...document.querySelectorAll('tbody tr')].map((one) => one.dataset.key)"
        )
        assert rows == [f"{one.namespace}/{one.name}" for one in board.waiting][:100]
        await show(tab, there, place(there, "GANG"))
        page = await tab.run("document.getElementById('page').innerText")
        first = next(one for one in board.waiting if one.waits.start and one.pods > 1)
        assert first.waits.says.replace("nvidia.com/gpu", "GPUs") in page
        assert "To change that" in page
        await show(tab, there, place(there, "RUNNING"))
        running = next(one for one in board.running if one.pods > 1 and one.ready)
        members = await tab.run("document.querySelectorAll('tbody tr').length")
        assert members == running.pods
        await show(tab, there, "/map")
        cells = "document.querySelectorAll('.cells i[data-holder]').length"
        assert await tab.run(cells) == held
        await show(tab, there, "/queues")
        assert await tab.run("document.querySelectorAll('.queue').length") == len(
            board.cache.queues
        )
        await show(tab, there, "/timeline")
        drawn = "document.querySelectorAll('.bar').length"
        assert await tab.run(drawn) > len(board.running) / 2

    run(story, tmp_path)


def test_what_happens_appears_without_reloading(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        await show(tab, there, "/map")
        await tab.run("window.isTheSame = true")
        there.cache.observe(NODE, None, objects.node("newcomer"))
        await tab.until("document.querySelector('[data-key=newcomer]')")
        await tab.run("location.hash = '#/workloads'")
        await tab.until("document.body.dataset.drawn === 'workloads'")
        await tab.run("document.getElementById('search').focus()")
        await tab.write("latecom")
        await tab.until("document.body.innerText.includes('No match')")
        there.cache.observe(WORKLOAD, None, objects.workload("latecomer"))
        await tab.until("document.querySelector('tbody tr')")
        # A user who types continues in the same document.
        assert await tab.run("document.activeElement.id") == "search"
        assert await tab.run("document.activeElement.value") == "latecom"
        assert await tab.run("window.isTheSame && location.hash") == "#/workloads?q=latecom"

    run(story, tmp_path)


def test_keys_are_enough(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        await show(tab, there, "/")
        for key, page in (("w", "workloads"), ("m", "map"), ("t", "timeline")):
            await tab.press("g")
            await tab.press(key)
            await tab.until(f"document.body.dataset.drawn === '{page}'")
        before = await tab.run("document.querySelector('.about').textContent")
        await tab.press("+")
        await tab.until(f"document.querySelector('.about').textContent !== {before!r}")
        assert "span=10800" in await tab.run("location.hash")
        await tab.press("ArrowLeft")
        await tab.until("location.hash.includes('end=')")
        await tab.press("0")
        await tab.until("!location.hash.includes('end=')")
        await tab.until("document.querySelector('.bar')")
        await tab.press("j")
        said = await tab.until("document.querySelector('.chart [role=status]').textContent")
        assert "GPU" in said
        await tab.press("Enter")
        await tab.until("document.body.dataset.drawn === 'gang'")
        await tab.run("location.hash = '#/map'")
        await tab.until("document.body.dataset.drawn === 'map'")
        await tab.run("document.querySelector('.map a').focus()")
        first = await tab.run("document.activeElement.textContent")
        await tab.press("ArrowRight")
        assert await tab.run("document.activeElement.textContent") != first
        await tab.press("Enter")
        await tab.until("document.body.dataset.drawn === 'node'")
        await tab.press("/")
        await tab.until("document.activeElement.id === 'search'")

    run(story, tmp_path)


def test_an_address_leads_to_the_same_place_again(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        await show(tab, there, "/timeline?by=node&span=86400")
        assert await tab.run("document.querySelectorAll('.lane').length") > 3
        assert await tab.run("document.querySelector('[aria-current=true]').textContent") == "Nodes"
        await show(tab, there, "/workloads?state=runs")
        states = await tab.run(
            "[...document.querySelectorAll('td .chip')].map((one) => one.textContent)"
        )
        assert set(states) <= {"running", "starting"}

    run(story, tmp_path)


def test_a_stranger_sees_nothing_and_can_sign_in_and_out(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        await tab.go(f"{there.address}#/queues")
        await tab.until("document.getElementById('token')")
        assert "research" not in await tab.run("document.documentElement.outerHTML")
        await tab.write("wrong")
        await tab.press("Enter")
        wrong = "document.querySelector('.wrong').textContent"
        await tab.until(f"{wrong} === 'This token is not valid.'")
        await tab.run("document.getElementById('token').value = ''")
        await tab.write(TOKEN)
        await tab.press("Enter")
        await tab.until("document.body.dataset.drawn === 'queues'")
        await tab.run("[...document.querySelectorAll('button')].at(-1).click()")
        await tab.until("document.getElementById('token')")
        assert await tab.run("sessionStorage.length") == 0
        tab.errors = [one for one in tab.errors if "/session" not in one]  # a 401 is noted there

    run(story, tmp_path)


@pytest.mark.slow
def test_a_large_cluster_weighs_little(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        for page in ("/", "/workloads", "/map", "/timeline", "/nodes"):
            tab.bytes = 0
            await tab.call("Network.setCacheDisabled", cacheDisabled=True)
            await show(tab, there, page)
            assert tab.bytes < 1_500_000, page
        assert (
            await tab.run("document.querySelectorAll('tbody tr').length") == 104
        )  # and pools, and claims

    run(story, tmp_path, sample(NOW, nodes=1_000, gangs=10_000))


@pytest.mark.slow
def test_pictures_for_the_readme_are_of_a_living_cluster_and_small(tmp_path: Path) -> None:
    taken = asyncio.run(take(tmp_path / "pictures", PICTURES, lives_s=15.0))
    assert [path.stem for path in taken] == [one.name for one in PICTURES]
    assert all(10_000 < path.stat().st_size < MOST_BYTES for path in taken)


# What hangs over the side of a phone.
TOO_WIDE = """
document.documentElement.scrollWidth > 390
  && [...document.querySelectorAll("#page *")]
    .filter((one) => one.getBoundingClientRect().right > 391 && !one.children.length)
    .map((one) => one.outerHTML.slice(0, 200))"""
# What names, users, labels and messages could be where an API does not insist on better ones.
HOSTILE = (
    "constructor",
    "__proto__",
    "<img src=x onerror=window.hacked=1>",
    '"><script>window.hacked=1</script>',
    "' onmouseover='window.hacked=1",
    "javascript:window.hacked=1",
    "a%2Fb?c#d&e=f",
    "{0}{1}",
    "\u202egnp.exe",
    "ﷺ" * 40,
    "x" * 253,
)


def test_hostile_names_break_no_page(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        for at, name in enumerate(HOSTILE):
            waits = objects.workload(f"w{at}")
            waits["metadata"]["annotations"] = {"unisono.dev/user": name}
            waits["metadata"]["ownerReferences"][0]["name"] = name
            says = {"stage": name, "facts": [{"fact": name, "says": name, "changes": name}]}
            waits["status"]["conditions"] = [
                {"type": "QuotaReserved", "status": "False", "reason": name, "message": name},
                {
                    "type": "unisono.dev/Explanation",
                    "status": "True",
                    "reason": "Quota",
                    "message": json.dumps(says),
                },
            ]
            there.cache.observe(WORKLOAD, None, waits)
            node = objects.node(name)
            node["metadata"].setdefault("labels", {})["node.kubernetes.io/instance-type"] = name
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = name
            node["spec"] = {"taints": [{"key": f"unisono.dev/{name}", "value": name}]}
            there.cache.observe(NODE, None, node)
        there.dashboard.refresh()
        await tab.look(390, 844)
        pages = [one for one in PAGES if one != "SIGN-IN"]
        pages += [f"/nodes/{quote(name, safe='')}" for name in HOSTILE]
        pages += [f"/workloads/team-a/w{at}" for at in range(len(HOSTILE))]
        pages += ["/constructor", "/toString", "/map?colour=constructor&by=constructor"]
        pages += [f"/workloads?q={quote(name, safe='')}" for name in HOSTILE]
        for page in pages:
            await show(tab, there, place(there, page))
            assert not await tab.run("window.hacked"), page
            assert not await tab.run(TOO_WIDE), page
        # A link leads to what it names.
        await show(tab, there, "/nodes")
        links = "[...document.querySelectorAll('tbody th a')].map((one) => one.hash)"
        hashes = await tab.run(links)
        for name in HOSTILE:
            assert f"#/nodes/{await tab.run(f'encodeURIComponent({json.dumps(name)})')}" in hashes
        for at, name in enumerate(HOSTILE):
            await show(tab, there, f"/workloads/team-a/w{at}")
            assert await tab.run("document.querySelector('h1').textContent") == name

    run(story, tmp_path)


def test_the_language_is_that_of_the_browser_or_of_the_button(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        heading = "document.querySelector('h1').textContent"
        await tab.call("Emulation.setUserAgentOverride", userAgent="", acceptLanguage="ko-KR,en")
        await show(tab, there, "/queues")
        assert await tab.run(heading) == "큐"
        chosen = "[...document.querySelectorAll('#account button')].find((one) => one.lang)"
        assert await tab.run(f"{chosen}.textContent") == "English"
        await tab.run(f"{chosen}.click()")
        await tab.until(f"document.body.dataset.drawn && {heading} === 'Queues'")
        assert await tab.run("document.documentElement.lang") == "en"
        await show(tab, there, place(there, "GANG"))  # it is remembered
        assert "Why it waits" in await tab.run("document.getElementById('page').innerText")
        await tab.run(f"{chosen}.click()")
        await tab.until("document.documentElement.lang === 'ko' && document.body.dataset.drawn")
        text = await tab.until("document.getElementById('page').innerText")
        assert "왜 기다리는가" in text
        assert "쿼터" in text  # what the server says is translated as well

    run(story, tmp_path)


def test_alerts_link_to_what_they_are_about(tmp_path: Path) -> None:
    async def story(tab: Tab, there: Served) -> None:
        await show(tab, there, "/")
        await tab.press("g")
        await tab.press("a")
        await tab.until("document.body.dataset.drawn === 'alerts'")
        severities = (
            "[...document.querySelectorAll('[data-severity]')].map((one) => one.dataset.severity)"
        )
        assert await tab.run(severities) == ["critical", "warning", "warning"]
        panel = "document.querySelector('.things a[target=_blank]')"
        assert (await tab.run(f"{panel}.href")).startswith("https://grafana.example/d/unisono-")
        assert await tab.run(f"{panel}.rel") == "noopener noreferrer"
        await tab.run("document.querySelector('.things a[href^=\"#/workloads/\"]').click()")
        await tab.until("document.body.dataset.drawn === 'gang'")
        assert "Why it waits" in await tab.run("document.getElementById('page').innerText")

    run(story, tmp_path)


def test_gangs_on_the_map_have_colours_that_differ(tmp_path: Path) -> None:
    kinds = (
        "(() => { const found = {};"
        " for (const one of document.querySelectorAll('.cells i[data-holder]'))"
        " if (one.dataset.holder !== '·') found[one.dataset.holder] = one.className;"
        " return found; })()"
    )

    async def story(tab: Tab, there: Served) -> None:
        await show(tab, there, "/map")
        found: dict[str, str] = await tab.run(kinds)
        assert len(found) > 5
        # As many as can differ do; each has one of eight colours and one of four patterns.
        assert len(set(found.values())) == min(len(found), 32)
        first = dict(list(found.items())[:5])
        await tab.run("location.hash = '#/workloads?state=runs'")
        await tab.until("document.body.dataset.drawn === 'workloads'")
        for gang, kind in first.items():
            there_too = f"document.querySelector('.gang[title=\"{gang}\"] .dot')"
            if await tab.run(f"Boolean({there_too})"):
                assert await tab.run(f"{there_too}.className") == f"dot {kind}"
        await show(tab, there, "/map?colour=busy")
        kinds_of = (
            "[...new Set([...document.querySelectorAll('.cells i')].map((one) => one.className))]"
        )
        assert set(await tab.run(kinds_of)) <= {
            *("free", "down", "idle", "unknown", "cool0", "cool1", "cool2", "cool3"),
        }

    run(story, tmp_path)
