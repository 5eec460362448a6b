"""Headless Chromium, driven over the pipe of its DevTools protocol: a page, its errors, and pictures of it."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60


class BrowserError(Exception):
    """The browser did not answer, or the page's code failed."""


def installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page. Its messages about the page are kept in `complaints`."""

    def __init__(self, path: str):
        self.profile = tempfile.TemporaryDirectory(prefix="fishplate-browser-", ignore_cleanup_errors=True)
        their_in, self.to_browser = os.pipe()
        self.from_browser, their_out = os.pipe()

        def place():
            # The protocol's pipe is descriptors 3 and 4. The copies stay clear of each other.
            high_in, high_out = os.dup2(their_in, 98), os.dup2(their_out, 99)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        words = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                 "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=(3, 4), preexec_fn=place)
        os.close(their_in)
        os.close(their_out)
        self.rest, self.last, self.session, self.events = b"", 0, None, []
        self.complaints = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.profile.cleanup()

    def receive(self, until: float) -> dict:
        while b"\0" not in self.rest:
            if not select.select([self.from_browser], [], [], max(0, until - time.monotonic()))[0]:
                raise BrowserError(f"no answer within {SECONDS} s")
            part = os.read(self.from_browser, 1 << 20)
            if not part:
                raise BrowserError("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **parameters) -> dict:
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.to_browser, rest):]
        until = time.monotonic() + SECONDS
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.keep(answer)

    def keep(self, event: dict) -> None:
        method, about = event.get("method"), event.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(word.get("value", word.get("description"))) for word in about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent" and about["request"]["url"].split(":")[0] not in ("file", "data", "blob", "about"):
            self.complaints.append(f"request to {about['request']['url']}")

    def open(self, file: Path, width: int, height: int = 900, dark: bool = False, scripts: bool = True) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        until = time.monotonic() + SECONDS
        while "Page.loadEventFired" not in self.events:
            self.keep(self.receive(until))
        if scripts:
            self.settle()

    def run(self, code: str):
        """The value of an expression, or of the promise that it gives."""
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{code}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def settle(self) -> None:
        """Waits until the page has drawn what it was asked to draw."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => done(0)), 150)))")

    def point_at(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def picture(self, file: Path) -> None:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(taken["data"]))
