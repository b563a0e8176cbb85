"""Somebody who reads the README and does what it says: types its commands, and logs in with a browser."""

import os
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import httpx2


class Shell:
    """A shell in which the commands of a page are typed, one after the other, by somebody with a home of their own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._bash = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def close(self) -> None:
        self._bash.communicate(timeout=120)

    def type(self, command: str) -> str:
        """Run a command and return what a terminal shows of it."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{command}\necho; echo END\n")
        self._bash.stdin.flush()
        lines = []
        while (line := self._bash.stdout.readline()) != "END\n":
            assert line, "the shell ended"
            lines.append(line)
        return "".join(lines).strip()


class Forms(HTMLParser):
    """The first form of a page, and what it sends along."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.fields = "", dict[str, str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form" and not self.action:
            self.action = found["action"] or ""
        if tag in {"input", "button"} and found.get("name") and found["name"] not in self.fields:
            self.fields[found["name"] or ""] = found.get("value") or ""


ADMINISTRATOR, CHOSEN = "admin@remuda.local", "a password of one's own choice"
"""The first user, and the password that replaces the first one."""


def visit(address: str, password: str) -> str:
    """Open a page that asks who one is, log in, which leads to the console, and return what the page shows then."""
    with httpx2.Client(follow_redirects=True) as browser:
        page = browser.get(address)
        while "password" in (fields := Forms(page.text).fields) or "new_password" in fields:
            page = fill_in(browser, page, password)
        assert "<h1>Your instances</h1>" in page.text, page.text
        page = browser.get(address)
        assert (page.status_code, str(page.url)) == (200, address), page.text
        return page.text


def let_in(address: str, password: str) -> None:
    """Do in a browser what the page says: log in, and let the device in."""
    with httpx2.Client(follow_redirects=True) as browser:
        page = browser.get(address)
        for _ in range(5):
            if not Forms(page.text).action:
                break
            page = fill_in(browser, page, password)


def fill_in(browser: httpx2.Client, page: httpx2.Response, password: str) -> httpx2.Response:
    """Send the form of a page with what it asks for: who one is, or another password than the first one."""
    known = {"email": ADMINISTRATOR, "username": ADMINISTRATOR, "password": password}
    known |= {"new_password": CHOSEN, "repeated_password": CHOSEN}
    form = Forms(page.text)
    filled = {name: known.get(name, value) for name, value in form.fields.items()}
    origin = {"Origin": "/".join(str(page.url).split("/")[:3])}
    sent = browser.post(form.action, data=filled, headers=origin)
    assert sent.is_success, sent.text
    return sent
