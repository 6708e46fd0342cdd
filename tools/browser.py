"""A real browser, driven through chromedriver with nothing but the standard library (W3C WebDriver is plain HTTP)."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing():
    """What is not installed, or None."""
    for names in (("chromedriver",), ("chromium", "chromium-browser", "google-chrome")):
        if not any(shutil.which(name) for name in names):
            return names[0]
    return None


class Browser:
    """One window. Use it in a with statement."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        browser = next(shutil.which(n) for n in ("chromium", "chromium-browser", "google-chrome") if shutil.which(n))
        options = {
            "binary": browser,
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        for _ in range(100):
            try:
                answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        else:
            raise RuntimeError("chromedriver does not answer")
        self.base += f"/session/{answer['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def chrome(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, width, height, dark):
        """The size of the window and the reader's light or dark setting."""
        self.chrome(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.chrome("Emulation.setEmulatedMedia", media="", features=[scheme])

    def open(self, path, state=""):
        """Opens a page; `state` is what follows the # of its address. Always loads it anew."""
        self.call("POST", "/url", {"url": "about:blank"})
        self.call("POST", "/url", {"url": path.absolute().as_uri() + (f"#{state}" if state else "")})

    def script(self, text, *arguments):
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def hover(self, selector, dx=0, dy=0):
        """Moves the pointer to the middle of an element, or beside it."""
        element = {ELEMENT: self.find(selector)}
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        move = {"type": "pointerMove", "duration": 0, "origin": element, "x": dx, "y": dy}
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def drag(self, selector, dx, dy=0):
        """Drags an element, by so many pixels."""
        element = {ELEMENT: self.find(selector)}
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        move = {"type": "pointerMove", "duration": 0, "origin": element, "x": 0, "y": 0}
        actions = [move, {"type": "pointerDown", "button": 0}]
        actions += [{"type": "pointerMove", "duration": 20, "origin": "pointer", "x": dx, "y": dy}]
        actions += [{"type": "pointerUp", "button": 0}]
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def until(self, what, text, seconds=20):
        """Waits until a script gives something that is true, and gives it back."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.script(text)
            if found:
                return found
            time.sleep(0.03)
        raise SystemExit(f"FAILED: {what}: not within {seconds} s")

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, key):
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def complaints(self):
        """What the console has said since the last call."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses asked for since the last call."""
        events = (json.loads(e["message"])["message"] for e in self.call("POST", "/se/log", {"type": "performance"}))
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def picture(self, path, whole=True):
        """A picture of the whole page, or of the window."""
        shot = self.chrome("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self.clip(whole))
        path.write_bytes(base64.b64decode(shot["data"]))

    def clip(self, whole):
        if not whole:
            return {}
        size = self.chrome("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
