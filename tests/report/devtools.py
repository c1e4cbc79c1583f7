"""A tab of headless Chromium, spoken to over a pipe: real keys, real media, and everything the page complains about."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
).split()
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36} | {
    f"Arrow{way}": 37 + i for i, way in enumerate(("Left", "Up", "Right", "Down"))
}


class Tab:
    """One page. `complaints` are console messages, refused rules and uncaught errors; `asked` every address wanted."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out, self._held, self._number, self._session = into, out, b"", 0, ""
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, (method, told["error"])
                return told["result"]

    def size(self, width: int, height: int = 900, *, mobile: bool = False) -> None:
        """Give the window another size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def media(self, kind: str = "", **features: str) -> None:
        """Print or screen, and what a reader prefers: `media("print")`, `media(prefers_color_scheme="dark")`."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=kind, features=named)

    def scripts(self, allowed: bool) -> None:
        """Let pages run scripts from their next opening on, or not."""
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def open(self, address: str) -> None:
        """Open an address and wait until it has loaded."""
        self.loaded = False
        if "loaderId" not in self.call("Page.navigate", url=address):
            return  # a place in the page that is open already
        end = time.monotonic() + 60
        while not self.loaded:
            assert time.monotonic() < end, "the page did not load"
            self._next()

    def value(self, expression: str) -> Any:
        """What an expression gives on the page."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def busy(self) -> float:
        """Seconds that the page's thread has computed: unlike the clock's, they do not tell what else is running."""
        return next(m["value"] for m in self.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        given = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """`mouseMoved`, `mousePressed` or `mouseReleased` there."""
        button = "none" if kind == "mouseMoved" else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=int(button == "left"))

    def click(self, selector: str) -> None:
        """Click on the middle of an element with the mouse."""
        box = self.value(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const b = e.getBoundingClientRect();"
            f" return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, *box)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot, of all of the page if asked for."""
        given: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **given)["data"]))

    def printed(self, path: Path) -> None:
        """The page as a printer gets it."""
        found = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._out], [], [], 60)
            assert ready, "Chromium does not answer"
            more = os.read(self._out, 1 << 20)
            assert more, "Chromium ended"
            self._held += more
        line, _, self._held = self._held.partition(b"\0")
        told = json.loads(line)
        given = told.get("params", {})
        match told.get("method"):
            case "Page.loadEventFired":
                self.loaded = True
            case "Runtime.consoleAPICalled":
                self.complaints.append(str([one.get("value") for one in given["args"]]))
            case "Runtime.exceptionThrown":
                self.complaints.append(str(given["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(given["entry"]["text"])
            case "Network.requestWillBeSent":
                self.asked.append(given["request"]["url"])
        return told


@contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """A fresh browser with one empty tab."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found, "Chromium is not installed. On Debian and Ubuntu: apt install chromium"
    told_read, told_write = os.pipe()
    answer_read, answer_write = os.pipe()
    # The browser reads its descriptor 3 and writes 4; bash can move ours there whatever their numbers are.
    line = f'exec "$0" "$@" 3<&{told_read} 4>&{answer_write}'
    process = subprocess.Popen(
        ["bash", "-c", line, found, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(told_read, answer_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(told_read)
    os.close(answer_write)
    try:
        yield Tab(told_write, answer_read)
    finally:
        os.close(told_write)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(answer_read)
