"""A real browser for tests: headless Chromium, driven over a pipe with its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


PATIENCE = 60
# The browser reads commands from descriptor 3 and writes answers to descriptor 4.
LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def browser_path() -> str:
    """The browser, or a skip; where `CI` is set, a missing browser is a failure."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium found; install it with: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Page:
    """One open page. `requests` are the addresses it asked for, `problems` what it complained about."""

    def __init__(self, sender: int, receiver: int) -> None:
        self._sender, self._receiver = sender, receiver
        self._number, self._buffer, self._session = 0, b"", None
        self.requests: list[str] = []
        self.problems: list[str] = []

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._sender, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def wait_for(self, event: str) -> None:
        while self._receive().get("method") != event:
            pass

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receiver], [], [], PATIENCE)
            assert ready, f"the browser has not answered for {PATIENCE} seconds"
            chunk = os.read(self._receiver, 1 << 16)
            assert chunk, "the browser closed the pipe"
            self._buffer += chunk
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.problems.append(json.dumps(message["params"]))
        return message

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, *, width: int, dark: bool = False) -> None:
        """Show a file in a window of a width, as a phone would where it is narrow."""
        phone = width < 600
        scale = 2 if phone else 1
        size = {"width": width, "height": 844 if phone else 800}
        self.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=scale, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))


@contextmanager
def open_browser(profile: Path) -> Iterator[Page]:
    """A page in a browser of its own, with a fresh profile in a folder."""
    to_browser, from_browser = os.pipe(), os.pipe()
    numbers = (str(to_browser[0]), str(from_browser[1]))
    browser = [browser_path(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    command = [sys.executable, "-c", LAUNCH, *numbers, *browser]
    process = subprocess.Popen(
        command,
        pass_fds=(to_browser[0], from_browser[1]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        page = Page(to_browser[1], from_browser[0])
        page.attach()
        yield page
    finally:
        process.terminate()
        process.wait(timeout=20)
        os.close(to_browser[1])
        os.close(from_browser[0])
