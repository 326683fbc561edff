"""Chromium without a window, driven over its own protocol: open a page, press keys, take pictures.

One process, one tab at a time. What a page writes to its console as an error, what it asks for on
the network and how many bytes that took is kept, so that tests can insist on it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome")
_STARTS_S = 90.0
_ANSWERS_S = 90.0
_ONE_LOOK_S = 5.0
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--mute-audio"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-first-run", "--no-default-browser-check", "--disable-default-apps"),
    *("--disable-extensions", "--force-color-profile=srgb", "--remote-debugging-port=0"),
    # Sandboxes have little shared memory, and nothing to reach outside.
    *("--disable-dev-shm-usage", "--disable-features=Translate,MediaRouter,OptimizationHints"),
)


def find_browser() -> str | None:
    """Return where Chromium is; None if it is not there."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class PageTrouble(Exception):
    """The page or the browser did not do as it was told."""


class Tab:
    """One page in the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Speak over this socket."""
        self._socket = socket
        self._number = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.errors: list[str] = []
        self.addresses: list[str] = []
        self.bytes = 0

    async def listen(self) -> None:
        """Take in what the browser says, until it goes."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                future = self._waiting.pop(said["id"], None)
                if future is not None and not future.done():
                    future.set_result(said)
            else:
                self._hear(said["method"], said["params"])

    def _hear(self, method: str, about: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            text = (details.get("exception") or {}).get("description") or details["text"]
            self.errors.append(str(text))
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.errors.append(str([one.get("value") for one in about["args"]]))
        elif method == "Network.requestWillBeSent":
            self.addresses.append(about["request"]["url"])
        elif method == "Network.dataReceived":
            self.bytes += max(0, about["encodedDataLength"])
        elif method == "Network.responseReceived":
            self.bytes += max(0, int(about["response"]["encodedDataLength"]))

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Have the browser do something."""
        self._number += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = future
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        async with asyncio.timeout(_ANSWERS_S):
            said = await future
        if "error" in said:
            raise PageTrouble(f"{method}: {said['error']}")
        found: dict[str, Any] = said["result"]
        return found

    async def begin(self) -> None:
        """Have everything reported that is kept."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")

    async def look(
        self,
        width: int = 1280,
        height: int = 900,
        *,
        colours: Literal["light", "dark"] = "light",
        scale: float = 1.0,
    ) -> None:
        """Be a screen of a size, in light or dark."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 700,
        )
        features = [{"name": "prefers-color-scheme", "value": colours}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def go(self, address: str) -> None:
        """Open an address as a new document."""
        await self.run("window.isLeaving = true")
        # Without waiting: there is no answer when the page moves to another process.
        self._number += 1
        blank = {"id": self._number, "method": "Page.navigate", "params": {"url": "about:blank"}}
        await self._socket.send_json(blank)
        await self.until("!window.isLeaving")
        self._number += 1
        there = {"id": self._number, "method": "Page.navigate", "params": {"url": address}}
        await self._socket.send_json(there)
        await self.until("location.href !== 'about:blank'")

    async def run(self, script: str) -> Any:
        """Evaluate an expression, which may be a promise; return its value."""
        said = await self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise PageTrouble(str((details.get("exception") or details).get("description")))
        return said["result"].get("value")

    async def until(self, script: str, seconds: float = 60.0) -> Any:
        """Wait until an expression is true; return its value."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    # A page that moves to another process may never answer.
                    with contextlib.suppress(PageTrouble, TimeoutError):
                        if found := await asyncio.wait_for(self.run(_plain(script)), _ONE_LOOK_S):
                            return found
                    await asyncio.sleep(0.05)
        except TimeoutError:
            text = await self.run("document.body.innerText")
            raise PageTrouble(f"not so: {script}\n{text}\n{self.errors}") from None

    async def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {
            "Enter": 13,
            "Tab": 9,
            "ArrowLeft": 37,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "Escape": 27,
        }
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    async def write(self, text: str) -> None:
        """Type a text where the focus is."""
        await self.call("Input.insertText", text=text)

    async def picture(self, path: Path, *, whole: bool = False) -> None:
        """Take a picture of what is seen, or of the whole page."""
        form = "webp" if path.suffix == ".webp" else "png"
        said = await self.call(
            "Page.captureScreenshot", format=form, captureBeyondViewport=whole, fromSurface=True
        )
        path.write_bytes(base64.b64decode(said["data"]))


def _plain(script: str) -> str:
    """Return a script whose value can be sent: an element is true."""
    return f"((found) => found instanceof Node ? true : found)({script})"


@contextlib.asynccontextmanager
async def browsing(folder: Path, *, width: int = 1280) -> AsyncIterator[Tab]:
    """Have a browser with one tab while the block lasts; it keeps its things in a folder."""
    program = find_browser()
    if program is None:
        raise PageTrouble("there is no Chromium here (Debian: chromium)")
    profile = folder / "browser"
    port_file = profile / "DevToolsActivePort"
    port_file.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_STARTS_S):
            while not port_file.exists() or "\n" not in port_file.read_text():
                await asyncio.sleep(0.05)
        port = int(port_file.read_text().split()[0])
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                (target,) = [one for one in await answer.json() if one["type"] == "page"]
            address = target["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                tab = Tab(socket)
                hearing = asyncio.ensure_future(tab.listen())
                try:
                    await tab.begin()
                    await tab.look(width)
                    yield tab
                finally:
                    hearing.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
