"""Drive a headless Chromium by its debugging protocol, with the standard library alone."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One tab: where it went, what it said on the console and which requests it made."""

    def __init__(self, folder):
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0"]
        profile = Path(folder) / "profile"
        command = [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file, deadline = profile / "DevToolsActivePort", time.monotonic() + 60.0
        while not (port_file.exists() and port_file.read_text().count("\n")):
            assert time.monotonic() < deadline, "Chromium did not start"
            time.sleep(0.05)
        self.port = int(port_file.read_text().split()[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/list", timeout=30) as answer:
            target = next(page for page in json.load(answer) if page["type"] == "page")
        self.problems, self.requests, self.number = [], [], 0
        self.socket = self._connect(target["webSocketDebuggerUrl"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def _connect(self, url):
        path = url.split(str(self.port), 1)[1]
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        self.stream = connection.makefile("rb")
        while self.stream.readline().strip():
            pass
        return connection

    def _receive(self):
        """Return the next message; only whole text messages are sent by Chromium."""
        length = self.stream.read(2)[1] & 127
        if length > 125:
            length = struct.unpack(">H" if length == 126 else ">Q", self.stream.read(2 if length == 126 else 8))[0]
        return json.loads(self.stream.read(length))

    def send(self, method, **parameters):
        """Call a method of the protocol and return its result; note events that come meanwhile."""
        self.number += 1
        body = json.dumps({"id": self.number, "method": method, "params": parameters}).encode()
        size = len(body)
        head = bytes([129, 128 | size]) if size < 126 else bytes([129, 254]) + struct.pack(">H", size)
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(body)))
        while True:
            message = self._receive()
            if message.get("id") == self.number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, event, details):
        if event == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(details["exceptionDetails"])[:500])
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
            self.problems.append(json.dumps(details["args"])[:500])
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(details["entry"]["text"] + " " + details["entry"].get("url", ""))
        elif event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])

    def open(self, url):
        self.send("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def size(self, width, height):
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def run(self, script):
        """Return the value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script, seconds=30.0):
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(f"(() => {{ try {{ return Boolean({script}); }} catch {{ return false; }} }})()"):
            assert time.monotonic() < deadline, (
                f"{script} did not become true; the page says {self.run('document.body.innerText')[:500]}"
            )
            time.sleep(0.1)

    def text(self, id):
        return self.run(f"document.getElementById({json.dumps(id)}).textContent")

    def click(self, id):
        self.run(f"document.getElementById({json.dumps(id)}).click()")

    def picture(self, path, whole=True):
        if whole:
            height = self.run("Math.ceil(document.documentElement.scrollHeight)")
            width = self.run("innerWidth")
            self.size(width, height)
        Path(path).write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(30)
