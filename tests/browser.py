"""A real browser for tests: Chromium, controlled over a pipe with its DevTools protocol."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PATIENCE = 60


def found_browser() -> str:
    """Return the path of a browser; skip the test if there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None or os.name == "nt":
        pytest.skip("there is no chromium: the page was not opened in a browser")
    return found


class Tab:
    """A page in a separate browser; requests and errors are recorded."""

    def __init__(self, folder: Path) -> None:
        here, there = os.pipe(), os.pipe()
        self.writing, self.reading = here[1], there[0]
        browser = [found_browser(), *_FLAGS, f"--user-data-dir={folder}"]
        # The browser reads from file descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{here[0]} 4>&{there[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *browser],
            pass_fds=(here[0], there[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(here[0])
        os.close(there[1])
        self.number, self.buffer, self.session = 0, b"", None
        self.requests, self.complaints, self.loaded = [], [], 0
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Network", "Page", "Runtime", "Log"):
            self.ask(f"{part}.enable")

    def ask(self, method: str, **params: object) -> dict:
        """Send a command and return its response."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict:
        while b"\0" not in self.buffer:
            got = os.read(self.reading, 1 << 20)
            assert got, "the browser went away"
            self.buffer += got
        raw, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(raw)
        told = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(told["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(told["exceptionDetails"]["text"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(str(told["args"]))
            case "Page.loadEventFired":
                self.loaded += 1
        return message

    def open(self, path: Path) -> None:
        """Load a file completely."""
        before, until = self.loaded, time.monotonic() + _PATIENCE
        self.ask("Page.navigate", url=path.as_uri())
        while self.loaded == before:
            assert time.monotonic() < until, "the page did not load"
            self._next()

    def run(self, code: str) -> object:
        """Return the value of an expression on the page."""
        done = self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, **extra)

    def type(self, text: str) -> None:
        """Type text into the focused element."""
        self.ask("Input.insertText", text=text)

    def close(self) -> None:
        """Close the browser."""
        self.process.terminate()
        self.process.wait(_PATIENCE)
        os.close(self.writing)
        os.close(self.reading)
