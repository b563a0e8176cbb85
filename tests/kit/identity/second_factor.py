"""Steps of users with second factors, in the browsers of `tests.kit.identity.login`."""

import html
import json
import re
from dataclasses import dataclass
from typing import Any

from remuda.identity.kinds.factors import SecondFactors, SecondFactorsSpec
from remuda.identity.kinds.users import user_id
from tests.kit.asgi.contract import Reply
from tests.kit.identity.account_page import form_with
from tests.kit.identity.login import JO, PASSWORD, Browser, Forms, LoginEnvironment
from tests.kit.identity.software_authenticator import SecurityKey, app_code

PATH = "/oauth2/v2/factors"
_KEY = re.compile(r"<code>([A-Z2-7 ]{39})</code>")
_CODE = re.compile(r"<code>([0-9a-z]{4}(?:-[0-9a-z]{4}){3})</code>")


@dataclass
class Enrolled:
    """Person with an authenticator app, in the browser where it was added."""

    browser: Browser
    key: str
    codes: list[str]


async def spec_of(logins: LoginEnvironment, subject: str = JO) -> SecondFactorsSpec:
    return (await logins.store.get(SecondFactors, user_id(subject))).spec


async def at_factors(logins: LoginEnvironment, subject: str = JO, password: str = PASSWORD) -> tuple[Browser, Reply]:
    """Return a browser in which a user without a second factor has just logged in, and the page of them."""
    browser = logins.browser()
    sent = await browser.submit(await browser.get(PATH), email=subject, password=password)
    return browser, await browser.follow(sent)


async def enrolled(logins: LoginEnvironment, subject: str = JO) -> Enrolled:
    """Add an authenticator app for a user who has none."""
    browser, page = await at_factors(logins, subject)
    place, _ = form_with(page, "kind")
    form = await browser.submit(page, button=("kind", "app"), form=place)
    key = key_of(form)
    shown = await browser.submit(form, code=app_code(key, logins.world.clock.now()))
    assert shown.status == 200, shown.body.decode()
    # The code that confirmed the app must not log in.
    await logins.world.clock.sleep(90)
    return Enrolled(browser, key, codes_of(shown))


async def with_passkey(logins: LoginEnvironment, key: SecurityKey) -> Browser:
    """Add a passkey for Jo, who has no other authenticator."""
    browser, page = await at_factors(logins)
    place, _ = form_with(page, "kind")
    form = await browser.submit(page, button=("kind", "passkey"), form=place)
    shown = await browser.submit(form, credential=key.create(options_of(form)))
    assert codes_of(shown), shown.body.decode()
    return browser


async def challenged(
    logins: LoginEnvironment, browser: Browser | None = None, subject: str = JO, password: str = PASSWORD
) -> tuple[Browser, Reply]:
    """Return a browser in which a user gave the password for the console, and the page of the second step."""
    browser = browser or logins.browser()
    page = await browser.submit(await browser.authorize(prompt="login"), email=subject, password=password)
    assert page.status == 200, page.status
    return browser, page


async def answer(browser: Browser, page: Reply, **fields: str) -> Reply:
    """Send the form of the second step that has these fields."""
    for place, form in enumerate(Forms.of(page)):
        if fields.keys() <= form.fields.keys():
            return await browser.submit(page, None, place, **fields)
    raise AssertionError(f"no form with {sorted(fields)}: {page.body.decode()}")


def key_of(page: Reply) -> str:
    found = _KEY.search(page.body.decode())
    assert found, page.body.decode()
    return found[1]


def codes_of(page: Reply) -> list[str]:
    return _CODE.findall(page.body.decode())


def options_of(page: Reply) -> dict[str, Any]:
    """Return the options that the script of a page gives the browser."""
    found = re.search(r'data-options="([^"]+)"', page.body.decode())
    assert found, page.body.decode()
    options: dict[str, Any] = json.loads(html.unescape(found[1]))
    return options
