"""The page about outcomes in a real browser: it draws, it listens to keys, it breaks nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.simulations import schedule
from unisono.sim.comparison import compare
from unisono.sim.generators import gpu, lublin
from unisono.sim.page.render import page

pytestmark = pytest.mark.real

# Runs in the page after its own script: presses keys, and leaves what it saw in the document.
_PROBE = """<script>
addEventListener("error", (event) => { document.body.dataset.trouble = event.message; });
const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key }));
const said = document.getElementById("said");
const note = (name) => { document.body.dataset[name] = said.textContent; };
setTimeout(() => {
  const curve = document.querySelector("#waits svg");
  curve.focus();
  press(curve, "End");
  note("curve");
  const bars = document.querySelector("#gantt canvas");
  bars.focus();
  press(bars, "n");
  note("bars");
  press(bars, "+");
  document.querySelectorAll("#policies button")[0].click();
  document.body.dataset.hidden = document.querySelectorAll("#gantt > figure[hidden]").length;
  const pen = document.querySelectorAll("#gantt canvas")[1].getContext("2d");
  const { width, height } = pen.canvas;
  const colors = new Set();
  const pixels = new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer);
  for (const pixel of pixels) colors.add(pixel);
  document.body.dataset.colors = colors.size;
  const colour = [...document.querySelectorAll("#controls select")][1];
  if (colour) {
    document.body.dataset.first = document.getElementById("colour-of").textContent;
    colour.value = "wait";
    colour.dispatchEvent(new Event("change"));
  }
  document.body.dataset.second = document.getElementById("colour-of").textContent;
  document.body.dataset.wider = document.documentElement.scrollWidth > innerWidth;
}, 100);
</script>"""


@pytest.fixture(scope="module")
def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("there is no Chromium here")


def test_the_page_says_what_colours_mean(browser: str, tmp_path: Path) -> None:
    """Of several queues it begins with those, and the reader may choose."""
    trace = gpu(jobs=60, gpus=32, teams=3, seed=3)
    outcomes = [schedule(trace, policy) for policy in ("fcfs", "easy")]
    seen = _seen(browser, page(outcomes, compare(outcomes)), tmp_path, 1280)[1]
    assert seen["first"] == "which queue it came from"
    assert seen["second"] == "how long it waited"


def _seen(browser: str, text: str, folder: Path, width: int) -> tuple[str, dict[str, str]]:
    """Return the document after the probe, and what the probe saw."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", f"{_PROBE}</body>"), encoding="utf-8")
    dumped = subprocess.run(
        [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--window-size={width},2000", "--virtual-time-budget=4000"),
            *(f"--user-data-dir={folder / 'profile'}", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    found = re.findall(r'data-(\w+)="([^"]*)"', re.findall(r"<body[^>]*>", dumped)[0])
    return dumped, dict(found)


@pytest.mark.parametrize("width", [500, 1280])
def test_the_page_draws_and_listens(browser: str, tmp_path: Path, width: int) -> None:
    trace = lublin(jobs=800, processors=64, load=1.0, seed=3)
    outcomes = [schedule(trace, policy) for policy in ("fcfs", "easy", "easy-sjbf")]
    dumped, seen = _seen(browser, page(outcomes, compare(outcomes)), tmp_path, width)
    assert 'data-drawn="yes"' in dumped
    assert "trouble" not in seen
    assert re.match(r"wait at most .* d; fcfs 100 %; easy 100 %; easy-sjbf 100 %", seen["curve"])
    assert re.match(r"fcfs: \d+, \d+ CPUs, waited .*, ran ", seen["bars"])
    assert seen["hidden"] == "1"
    assert int(seen["colors"]) > 20
    assert seen["wider"] == "false"  # nothing hangs over the side
    assert dumped.count('class="curve"') == 2 + 2 + 2
