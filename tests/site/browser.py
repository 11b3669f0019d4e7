# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, controlled through a pipe by the DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    """Records the console messages, the exceptions and the requests of all pages that it opens."""

    def __init__(self, program="chromium"):
        self.profile = tempfile.mkdtemp(prefix="stepwell-site-")
        from_browser, browser_out = os.pipe()
        browser_in, to_browser = os.pipe()

        def place_pipes():  # the browser reads from 3 and writes to 4
            inside, outside = os.dup(browser_in), os.dup(browser_out)
            os.dup2(inside, 3)
            os.dup2(outside, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", f"--user-data-dir={self.profile}"],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(browser_in)
        os.close(browser_out)
        self.reading, self.writing = from_browser, to_browser
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.events = [], [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(300)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self, seconds):
        """Returns the next message. Records it if it is an event."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.reading], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no answer of the browser within {seconds} s")
            data = os.read(self.reading, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        self.record(message.get("method"), message.get("params", {}))
        return message

    def record(self, method, event):
        if method == "Page.loadEventFired":
            self.events.append(method)
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Network.loadingFailed" and not event.get("canceled"):
            self.errors.append(f"a request failed: {event['errorText']}")
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(event["exceptionDetails"])[:400])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.errors.append(f"console.{event['type']}: {json.dumps(event['args'])[:400]}")
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{event['entry']['level']}: {event['entry']['text']} {event['entry'].get('url', '')}")

    def open(self, url):
        self.events.clear()
        self.send("Page.navigate", url=url)
        while not self.events:
            self.receive(300)

    def evaluate(self, script):
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def wait_for(self, script, seconds=300):
        """Returns as soon as the script is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.evaluate(f"new Promise(done => requestAnimationFrame(() => done(!!({script}))))"):
                return
        raise TimeoutError(script)

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """Makes the browser prefer `light` or `dark` pages."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot")["data"]))
