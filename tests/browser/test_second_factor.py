"""Second factors in a real browser, against `remuda up`: an app, a passkey, recovery codes, and an organization's word.

`SCREENSHOTS=directory` keeps a picture of each page.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.kit.browser.web_driver import ChromiumWindow, chromium_window, eventually
from tests.kit.identity.software_authenticator import app_code
from tests.kit.processes.program import Running, remuda, running

pytestmark = pytest.mark.browser

PASSWORD = "a horse that reads the manual"
ADMINISTRATOR = "admin@remuda.local"


@dataclass(frozen=True)
class Site:
    """Remuda at http://localhost, and a platform administrator's word."""

    running: Running
    url: str
    token: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        reply = httpx2.request(method, f"{self.running.url}/identity{path}", json=body, headers=headers, timeout=30)
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None

    def page(self, path: str) -> str:
        return f"{self.url}/identity/oauth2/v2/{path}"

    def organization(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.ask("GET", "/api/v1/organizations")
        return found[0]

    def user(self, subject: str) -> str:
        """Make a member of the first organization; return the link to set the password."""
        organization = self.organization()["metadata"]["id"]
        spec = {"subject": subject, "state": "active", "groupIDs": []}
        self.ask("POST", f"/api/v1/organizations/{organization}/users", {"spec": spec})
        return str(self.ask("POST", "/api/v1/passwords", {"subject": subject})["link"])

    def invite(self, subject: str, *, by: str) -> None:
        """Let an administrator of the first organization, who is made one, enter somebody who was not asked."""
        home = f"/api/v1/organizations/{self.organization()['metadata']['id']}"
        roles = {each["metadata"]["name"]: each["metadata"]["id"] for each in self.ask("GET", f"{home}/roles")}
        spec = {"subject": by, "state": "active", "groupIDs": []}
        member = self.ask("POST", f"{home}/users", {"spec": spec})["metadata"]["id"]
        group = {"roleIDs": [roles["administrator"]], "userIDs": [member], "serviceAccountIDs": []}
        self.ask("POST", f"{home}/groups", {"metadata": {"name": "inviters"}, "spec": group})
        issued = remuda("token", "issue", "--subject", by, "--data", str(self.running.data))
        assert issued.returncode == 0, issued.stderr
        inviter = Site(self.running, self.url, issued.stdout.strip())
        inviter.ask("POST", f"{home}/users", {"spec": {"subject": subject, "state": "active", "groupIDs": []}})

    def require(self, policy: str) -> None:
        found = self.organization()
        body = {"metadata": {"name": found["metadata"]["name"]}, "spec": {**found["spec"], "secondFactor": policy}}
        self.ask("PUT", f"/api/v1/organizations/{found['metadata']['id']}", body)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_in(tmp_path, {}) as made:
        yield made


@contextmanager
def site_in(folder: Path, more: Mapping[str, str]) -> Iterator[Site]:
    """Run Remuda with these variables."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, data = f"http://localhost:{port}", folder / "data"
    environment = {"REMUDA_SERVER__PUBLIC_URL": url, **more}
    with running(data, listen=f"127.0.0.1:{port}", environment=environment) as process:
        issued = remuda("token", "issue", "--subject", ADMINISTRATOR, "--data", str(data), environment=environment)
        assert issued.returncode == 0, issued.stderr
        yield Site(process, url, issued.stdout.strip())


@pytest.fixture
def window() -> Iterator[ChromiumWindow]:
    with chromium_window() as opened:
        yield opened


@dataclass
class Person:
    """Somebody at a browser."""

    site: Site
    window: ChromiumWindow
    subject: str
    pictures: int = 0

    def chooses_a_password(self, link: str) -> None:
        self.window.open(link)
        self.window.fill(new_password=PASSWORD, repeated_password=PASSWORD)
        self.window.press("Set password")
        self.window.shows("Your password is set")

    def logs_in(self, page: str = "account") -> None:
        """Go to a page that needs a login, and give the password."""
        self.window.open(self.site.page(page))
        self.window.fill(email=self.subject, password=PASSWORD)
        self.window.press("Log in")

    def sees_the_account(self, text: str) -> None:
        """Find the console after a login, and a text on the account page, to which it links."""
        self.window.shows("Your instances")
        assert urlsplit(self.window.url).path == "/"
        self.pictures_it("console")
        self.window.open(self.site.page("account"))
        self.window.shows(text)

    def logs_out(self) -> None:
        self.window.open(self.site.page("logout"))
        self.window.press("Log out")
        self.window.shows("You are logged out")

    def pictures_it(self, name: str) -> None:
        directory = os.environ.get("SCREENSHOTS")
        if directory:
            self.pictures += 1
            Path(directory).mkdir(parents=True, exist_ok=True)
            self.window.picture(Path(directory) / f"{self.subject.partition('@')[0]}-{self.pictures:02}-{name}.png")

    def key(self) -> str:
        """Return the key of the app that is being added."""
        (key,) = self.window.texts(".key code")
        return key

    def adds_an_app(self, name: str) -> str:
        """Fill in the page for an app; return its key."""
        key = self.key()
        self.pictures_it("enrol-app")
        self.window.fill(code=app_code(key, datetime.now(UTC)), name=name)
        self.window.press("Add the app")
        self.window.shows("Save your recovery codes")
        return key


def next_code(key: str, used: str) -> str:
    """Return the first code after that of a step: at most the next step's, which is accepted already."""
    now = datetime.now(UTC)
    return next(code for code in (app_code(key, now), app_code(key, now + timedelta(seconds=30))) if code != used)


def person(site: Site, window: ChromiumWindow, name: str) -> Person:
    """Return a member of the organization who has a password."""
    found = Person(site, window, f"{name}@example.com")
    found.chooses_a_password(site.user(found.subject))
    return found


def test_m27_an_authenticator_app_is_added_and_logs_in_and_so_does_a_recovery_code_once(
    site: Site, window: ChromiumWindow
) -> None:
    ann = person(site, window, "ann")
    ann.logs_in("factors")
    window.shows("You have none yet.")
    ann.pictures_it("no-factors")
    window.press("Add an authenticator app")
    window.press("Enter the key by hand")
    confirmed = app_code(ann.key(), datetime.now(UTC))
    key = ann.adds_an_app("phone")
    codes = window.texts(".codes code")
    assert len(codes) == 10
    ann.pictures_it("recovery-codes")
    window.press("I have saved them")
    window.shows("10 codes are left")
    ann.pictures_it("factors")
    ann.logs_out()
    window.forget()

    ann.logs_in()
    window.shows("Confirm that it is you")
    ann.pictures_it("second-factor")
    window.fill(code="000000")
    window.press("Log in")
    window.shows("The code is wrong")
    ann.pictures_it("wrong-code")
    window.fill(code=next_code(key, confirmed))
    window.press("Log in")
    ann.sees_the_account("1 authenticator, 10 recovery codes left")
    ann.pictures_it("account")
    ann.logs_out()

    ann.logs_in()
    window.press("Use a recovery code")
    window.fill(recovery_code=codes[0])
    ann.pictures_it("recovery-code")
    window.press("Log in with the recovery code")
    ann.sees_the_account("1 authenticator, 9 recovery codes left")
    ann.logs_out()

    ann.logs_in()
    window.press("Use a recovery code")
    window.fill(recovery_code=codes[0])
    window.press("Log in with the recovery code")
    window.shows("The recovery code is wrong, or was used already")


def test_m27_a_passkey_is_added_and_logs_in_and_without_it_nothing_does(site: Site, window: ChromiumWindow) -> None:
    bob = person(site, window, "bob")
    authenticator = window.add_authenticator()
    bob.logs_in("factors")
    window.press("Add a passkey")
    window.fill(name="laptop")
    bob.pictures_it("enrol-passkey")
    window.press("Create the passkey")
    window.shows("Save your recovery codes")
    window.press("I have saved them")
    window.shows("laptop")
    bob.pictures_it("factors")
    bob.logs_out()

    bob.logs_in()
    window.shows("Use a passkey")
    bob.pictures_it("second-factor")
    window.press("Use a passkey")
    bob.sees_the_account("1 authenticator, 10 recovery codes left")
    window.open(site.page("factors"))
    window.press("Add a passkey")
    window.press("Create the passkey")
    window.shows("already one of yours")
    bob.pictures_it("same-passkey")
    bob.logs_out()

    window.remove_authenticator(authenticator)
    window.add_authenticator()
    bob.logs_in()
    window.press("Use a passkey")
    window.shows("Nothing was confirmed in time, or it was cancelled")
    bob.pictures_it("no-passkey")


def test_m27_an_organization_that_requires_a_second_factor_leads_to_one(site: Site, window: ChromiumWindow) -> None:
    eve = person(site, window, "eve")
    site.require("password")
    eve.logs_in()
    window.shows("requires a second factor")
    eve.pictures_it("required")
    window.press("Continue without access there")
    eve.sees_the_account("None: a password alone is enough to log in")
    window.open(site.page("factors"))
    window.shows("requires a second factor, which this login lacked")
    eve.pictures_it("closed")
    eve.logs_out()

    eve.logs_in()
    window.press("Set up an authenticator app")
    window.press("Enter the key by hand")
    eve.adds_an_app("")
    window.press("I have saved them: continue")
    eve.sees_the_account("1 authenticator, 10 recovery codes left")
    window.open(site.page("factors"))
    window.press("Remove")
    window.shows("You have none yet.")
    assert re.search(r"“Authenticator app” was removed", window.text())
    eventually("the page is whole", lambda: window.texts("h1")[0] or None)


def test_m27_an_invitation_is_accepted_on_the_page_after_the_login(site: Site, window: ChromiumWindow) -> None:
    site.invite("finn@example.com", by="gil@example.com")
    finn = Person(site, window, "finn@example.com")
    finn.chooses_a_password(str(site.ask("POST", "/api/v1/passwords", {"subject": finn.subject})["link"]))
    window.open(site.page("account"))
    window.shows("Log in")
    finn.pictures_it("login")
    window.open(site.page("account"))
    window.fill(email=finn.subject, password="not this one")
    window.press("Log in")
    window.shows("The e-mail address or the password is wrong")
    finn.pictures_it("wrong-password")
    finn.logs_in()
    window.shows("You are invited")
    finn.pictures_it("invited")
    window.press("Decide later")
    window.shows("Your account")
    finn.pictures_it("account-with-invitation")
    window.open(site.page("invitations"))
    window.press("Accept")
    window.shows("Your instances")
    window.open(site.page("account"))
    window.shows("Your organizations")
    finn.pictures_it("accepted")
    assert "default" in window.text()


BOSS = "boss@example.com"


def test_m27_a_platform_administrator_is_led_to_the_second_factor_that_the_configuration_requires(
    tmp_path: Path, window: ChromiumWindow
) -> None:
    environment = {
        "REMUDA_IDENTITY__PLATFORM_SECOND_FACTOR": "password",
        "REMUDA_IDENTITY__PLATFORM_ADMINISTRATORS": f'["{BOSS}"]',
    }
    with site_in(tmp_path, environment) as site:
        boss = person(site, window, "boss")
        boss.logs_in()
        window.shows("Your roles in this system require a second factor")
        boss.pictures_it("required")
        window.press("Continue without access")
        window.open(site.page("factors"))
        window.shows("Your roles in this system require a second factor, which this login lacked.")
        boss.pictures_it("closed")
        boss.logs_out()
        boss.logs_in()
        window.press("Set up an authenticator app")
        window.press("Enter the key by hand")
        boss.adds_an_app("")
        window.press("I have saved them: continue")
        window.shows("Your instances")
        window.open(site.page("account"))
        window.shows("1 authenticator, 10 recovery codes left")
