"""The power goes at any write of a login, from the password to the logout: see `Story` for what must be so after."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count

import apsw
import pytest
from structlog.testing import capture_logs

from remuda.identity.kinds.oauth import AuthorizationCode, BrowserLogin
from remuda.identity.kinds.tokens import Revocation, Session
from remuda.identity.tokens import controller as controllers
from remuda.kernel.errors import RemudaError
from remuda.reconcile.ports import ReconcilePorts
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.login import (
    CONSOLE,
    CONSOLE_SECRET,
    JO,
    PASSWORD,
    ROUTES,
    Browser,
    LoginEnvironment,
    new_services,
    sent_to,
)
from tests.kit.identity.resource_api import IdentityApi, registry
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

PASSING = (BrowserLogin, AuthorizationCode, Session, Revocation)
ACCOUNT, LOGOUT = "/oauth2/v2/account", "/oauth2/v2/logout"


@asynccontextmanager
async def opened(world: World) -> AsyncIterator[LoginEnvironment]:
    """Open the store as it was left, with the controllers at work."""
    store = open_simulated(world, registry())
    service = new_services(world, store)
    ports = ReconcilePorts(store=store, clock=world.clock, randomness=world.randomness, log=store)
    drivers = controllers.controllers(ports, service.tokens.sessions, service.tokens.keys)
    for driver in drivers:
        await driver.start()
    try:
        yield LoginEnvironment(IdentityApi(world, store, service, ROUTES))
    finally:
        for driver in drivers:
            await driver.stop()
        await store.close()


class UnansweredError(Exception):
    """Somebody was told to come again later."""


class Story:
    """One person at one browser: logs in, lets the console in, which refreshes, and logs out.

    What they were told is so after a crash. What they were not told is either so, or can be done again.
    """

    def __init__(self) -> None:
        self.cookies: dict[str, str] = {}
        self.code = self.access = self.refresh = ""
        self.asked = self.told = ""
        """The last step that was begun, and the last that was acknowledged."""
        self.is_over = False

    async def tell(self, logins: LoginEnvironment) -> None:
        """Go through all of it, as far as it goes."""
        browser = self.at(logins)
        try:
            for name, step in self._steps(logins, browser).items():
                self.asked = name
                await step()
                self.told = name
        except UnansweredError:
            return
        finally:
            self.cookies = browser.cookies
        self.is_over = True

    def _steps(self, logins: LoginEnvironment, browser: Browser) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "log in": lambda: self._log_in(browser),
            "exchange": lambda: self._exchange(logins),
            "refresh": lambda: self._refresh(logins),
            "log out": lambda: self._log_out(browser),
        }

    def at(self, logins: LoginEnvironment) -> Browser:
        return Browser(logins.browser().client, dict(self.cookies))

    async def _log_in(self, browser: Browser) -> None:
        page = answered(await browser.authorize())
        if page.status == 200:
            is_known = b"Continue as" in page.body
            button = ("continue_as_current", "yes") if is_known else None
            page = answered(await browser.submit(page, button, email=JO, password=PASSWORD))
        self.code = sent_to(page)["code"]

    async def _exchange(self, logins: LoginEnvironment) -> None:
        reply = answered(await logins.exchange(self.code))
        assert reply.status == 200, reply.body
        self._keep(reply)

    async def _refresh(self, logins: LoginEnvironment) -> None:
        reply = answered(await refreshed(logins, self.refresh))
        assert reply.status == 200, reply.body
        self._keep(reply)

    async def _log_out(self, browser: Browser) -> None:
        answered(await browser.submit(answered(await browser.get(LOGOUT))))

    def _keep(self, reply: Reply) -> None:
        self.access, self.refresh = reply.json["access_token"], reply.json["refresh_token"]

    async def check_told(self, logins: LoginEnvironment) -> None:
        """See that what was acknowledged is so, and that what was not is not half so."""
        browser, is_leaving = self.at(logins), self.asked == "log out"
        is_in = await is_logged_in(browser)
        is_good = bool(self.access) and await is_accepted(logins, self.access)
        if self.told == "log out":
            assert not is_in
            assert not is_good
        elif is_leaving:
            assert is_in == is_good, "one is logged out with everything, or not at all"
        else:
            assert is_in == bool(self.told)
            assert is_good == bool(self.access)

    async def try_again(self, logins: LoginEnvironment) -> None:
        """Do again what was not acknowledged, as a client does whose connection broke."""
        if self.asked == "exchange" and self.told == "log in":
            reply = answered(await logins.exchange(self.code))
            assert reply.status == 200 or reply.json["error"] == "invalid_grant"
            again = answered(await logins.exchange(self.code))
            assert again.json["error"] == "invalid_grant"
            assert not (await logins.store.list(Session)).items, "what came of a code that came twice has ended"
        elif self.asked == "refresh" and self.told == "exchange":
            reply = answered(await refreshed(logins, self.refresh))
            is_good = await is_accepted(logins, self.access)
            assert is_good == (reply.status == 200), "it went on, or the session has ended"
        elif self.asked == "log out":
            browser = self.at(logins)
            page = answered(await browser.get(LOGOUT))
            if b"<form" in page.body:
                answered(await browser.submit(page))
            assert not await is_accepted(logins, self.access)
            assert not (await logins.store.list(Session)).items


def answered(reply: Reply) -> Reply:
    if reply.status >= 500:
        raise UnansweredError
    return reply


async def refreshed(logins: LoginEnvironment, token: str) -> Reply:
    proof = {"client_id": CONSOLE, "client_secret": CONSOLE_SECRET}
    form = {"grant_type": "refresh_token", "refresh_token": token, **proof}
    return await logins.api.ask(None).post("/oauth2/v2/token", form=form)


async def is_logged_in(browser: Browser) -> bool:
    return b"Your account" in (await browser.get(ACCOUNT)).body


async def is_accepted(logins: LoginEnvironment, token: str) -> bool:
    return (await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=f"Bearer {token}")).status == 200


async def left(logins: LoginEnvironment) -> list[str]:
    return [f"{kind.__name__} {each.name}" for kind in PASSING for each in (await logins.store.list(kind)).items]


def lose_power(sync: int, keep: Keep) -> bool:
    """Lose power at the nth sync, look, do it again, and tell whether the power went at all."""
    reached: list[bool] = []

    async def scenario(world: World) -> None:
        story = Story()
        async with opened(world) as logins:
            await logins.furnish()
        world.plan_power_cut(sync, keep=keep)
        try:
            async with opened(world) as logins:
                await story.tell(logins)
        except (RemudaError, apsw.Error):
            pass
        reached.append(world.disk.is_cut)
        world.power_cut(keep)
        async with opened(world) as logins:
            await logins.world.clock.sleep(20)
            await story.check_told(logins)
            await story.try_again(logins)
            await story.tell(logins)
            assert story.is_over, "all of it can be done again"
            assert not await is_accepted(logins, story.access)
            assert not await is_logged_in(story.at(logins))
            assert (await logins.exchange(story.code)).json["error"] == "invalid_grant"
        world.clock.jump(timedelta(days=2))
        async with opened(world) as logins:
            await logins.world.clock.sleep(20)
            assert await left(logins) == []

    with capture_logs():
        simulate(scenario, [sync])
    return reached[0]


@pytest.mark.parametrize("keep", ["none", "all"])
def test_a_loss_of_power_at_any_write_of_a_login_leaves_nothing_lost_and_nothing_usable(keep: Keep) -> None:
    syncs = next(sync for sync in count(1) if not lose_power(sync, keep)) - 1
    assert syncs > 10


@options(seeds=100)
async def test_a_logout_that_meets_an_exchange_leaves_no_session(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    code = sent_to(await browser.authorize())["code"]
    page = await browser.get(LOGOUT)
    exchanged, _ = await asyncio.gather(logins.exchange(code), browser.submit(page))
    if exchanged.status == 200:
        assert not await is_accepted(logins, exchanged.json["access_token"])
    assert not (await logins.store.list(Session)).items
