"""A headless Chromium, driven over the WebDriver protocol by chromedriver, with virtual authenticators (WebAuthn).

The protocol is JSON over HTTP (W3C WebDriver), and ten of its commands are all that the tests need.
"""

import base64
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from tests.kit.browser.debian import chromedriver, chromium, libraries

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_TIMEOUT_S = 60.0
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=900,1200",
)

T = TypeVar("T")


def eventually(sentence: str, found: Callable[[], T | None]) -> T:
    """Return what is found, as soon as it is; fail with the sentence when time is up."""
    deadline = time.monotonic() + _TIMEOUT_S
    while (result := found()) is None:
        assert time.monotonic() < deadline, f"not within {_TIMEOUT_S:g} s: {sentence}"
        time.sleep(0.05)
    return result


@dataclass(frozen=True)
class ChromiumWindow:
    """One window of a browser of its own, with an empty profile."""

    client: httpx2.Client
    session: str

    def open(self, url: str) -> None:
        self._command("POST", "url", {"url": url})

    @property
    def url(self) -> str:
        return str(self._command("GET", "url"))

    def text(self) -> str:
        """Return what the page shows, its invisible parts left out."""
        return " ".join(str(self._on(self._find("body"), "GET", "text")).split())

    def shows(self, words: str) -> None:
        """Wait until the page shows these words."""
        try:
            eventually(f"the page shows {words!r}", lambda: True if words in self._text_now() else None)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.url}: {self._text_now()}") from None

    def fill(self, **fields: str) -> None:
        """Type into fields, by their names."""
        for name, value in fields.items():
            element = self._awaited("css selector", f"input[name={name}]")
            self._on(element, "POST", "clear", {})
            self._on(element, "POST", "value", {"text": value})

    def press(self, words: str) -> None:
        """Click the button, link or summary that has these words."""
        path = f'//*[self::button or self::a or self::summary][contains(normalize-space(.), "{words}")]'
        self._on(self._awaited("xpath", path), "POST", "click", {})

    def texts(self, selector: str) -> list[str]:
        """Return what the elements of a selector contain, shown or not."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent.trim())"
        found: list[str] = self._command("POST", "execute/sync", {"script": script, "args": [selector]})
        return found

    def forget(self) -> None:
        """Delete the cookies, as another browser would have none."""
        self._command("DELETE", "cookie")

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._command("GET", "screenshot")))

    def add_authenticator(self) -> str:
        """Plug in a virtual authenticator whose user is present and verified; return its id."""
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
        }
        return str(self._command("POST", "webauthn/authenticator", options))

    def remove_authenticator(self, authenticator: str) -> None:
        self._command("DELETE", f"webauthn/authenticator/{authenticator}")

    def _text_now(self) -> str:
        try:
            return self.text()
        except (WebDriverError, IndexError):  # the page is being replaced
            return ""

    def _find(self, selector: str) -> str:
        return self._elements("css selector", selector)[0]

    def _awaited(self, using: str, value: str) -> str:
        """Return the first element, as soon as the page has one."""
        return eventually(f"the page has {value}", lambda: next(iter(self._elements(using, value)), None))

    def _elements(self, using: str, value: str) -> list[str]:
        return [str(each[_ELEMENT]) for each in self._command("POST", "elements", {"using": using, "value": value})]

    def _on(self, element: str, method: str, command: str, body: Any = None) -> Any:
        return self._command(method, f"element/{element}/{command}", body)

    def _command(self, method: str, command: str, body: Any = None) -> Any:
        return _sent(self.client, method, f"/session/{self.session}/{command}", body)


class WebDriverError(Exception):
    """Error of a command."""


def _sent(client: httpx2.Client, method: str, path: str, body: Any = None) -> Any:
    value = client.request(method, path, json=body).json()["value"]
    if isinstance(value, dict) and "error" in value:
        raise WebDriverError(f"{value['error']}: {value['message']}")
    return value


@contextmanager
def chromium_window() -> Iterator[ChromiumWindow]:
    """Start a browser with files of its own, whose path is short enough for its sockets."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        with _driver(directory) as port, _client(port) as client:
            session = _sent(client, "POST", "/session", {"capabilities": {"alwaysMatch": _capabilities(directory)}})
            try:
                yield ChromiumWindow(client, session["sessionId"])
            finally:
                _sent(client, "DELETE", f"/session/{session['sessionId']}")


def _capabilities(directory: Path) -> dict[str, Any]:
    options = {"binary": chromium(), "args": [*_ARGUMENTS, f"--user-data-dir={directory / 'profile'}"]}
    return {"goog:chromeOptions": options, "webauthn:virtualAuthenticators": True}


def _client(port: int) -> httpx2.Client:
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=_TIMEOUT_S, trust_env=False)


@contextmanager
def _driver(directory: Path) -> Iterator[int]:
    """Start chromedriver, and return its port."""
    log = directory / "chromedriver.log"
    environment = os.environ | libraries() | {"HOME": str(directory), "TMPDIR": str(directory)}
    with log.open("w") as output:
        command = [chromedriver(), "--port=0"]
        driver = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        yield _port(log)
    finally:
        driver.terminate()
        driver.wait(timeout=_TIMEOUT_S)


def _port(log: Path) -> int:
    def found() -> int | None:
        words = log.read_text().split("started successfully on port ")
        digits = words[1].strip().split(".")[0] if len(words) > 1 else ""
        return int(digits) if digits.isdigit() else None

    return eventually("chromedriver has started", found)
