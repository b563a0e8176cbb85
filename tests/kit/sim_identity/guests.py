"""Customers who log in, refresh, connect devices, choose passwords, end sessions and log out."""

from urllib.parse import parse_qs, urlsplit

from remuda.identity.kinds.oauth import BrowserLogin
from remuda.identity.kinds.users import user_id
from remuda.identity.oauth.clients import CLI
from remuda.identity.tokens.secrets import token_hash
from tests.kit.asgi.contract import Reply
from tests.kit.identity.login import CONSOLE_URI, COOKIE, Browser, Forms, sent_to
from tests.kit.sim_identity.history import Code, Session, verdict_of
from tests.kit.sim_identity.sessions import CONSOLE_PROOF, TokenHolder

GUESTS = ("guest-one@acme.test", "guest-two@apex.test")
WRONG = "not the password of anybody"
DEVICE, ACCOUNT = "/oauth2/v2/device", "/oauth2/v2/account"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Guests(TokenHolder):
    """One person at a browser, now one and now the other of two."""

    _browser: Browser | None = None

    async def act(self) -> None:
        """Do one thing."""
        acts = (
            *(self._log_in, self._log_in, self._exchange, self.refresh, self.refresh, self.refresh_again),
            *(self._connect_device, self.revoke, self.revoke_session, self._log_out, self._choose_password),
            self._end_session,
        )
        await self.one_of(acts)()

    async def _log_in(self) -> None:
        """Get a code, with a password unless the browser is known; and exchange it, unless somebody forgets to."""
        browser, guest = self._at_browser(), self.one_of(GUESTS)
        page = self._noted("GET", "/oauth2/v2/authorization", await browser.authorize(nonce="n"))
        if page.status == 200:
            page = await self._give_password(browser, page, guest)
        if page.status != 302 or "code" not in (sent := sent_to(page)):
            return
        login = await self._login()
        if login is None:
            return
        code = Code(sent["code"], login.spec.user, login.name)
        self.history.codes.append(code)
        self.history.secrets.add(code.text)
        if self.chance(0.8):
            await self._bring(code)

    async def _give_password(self, browser: Browser, page: Reply, guest: str) -> Reply:
        """Type a password that is, was or may be right."""
        known = self.history.facts["password", "person", guest]
        password = self.one_of([*sorted(map(str, known.possible)), self.system.first_password, WRONG])
        before, at_peace = known.possible, not known.is_disputed
        page = self._noted("POST", "/oauth2/v2/login", await browser.submit(page, email=guest, password=password))
        if page.status == 302:
            assert password in before | known.possible, f"{guest} logged in with a password that is not theirs"
        elif page.status == 401:
            is_right = known.is_surely(password) and before == known.possible and at_peace
            assert not is_right, f"{guest} was turned away with the right password"
        return page

    async def _exchange(self) -> None:
        """Bring a code, for the first time or again."""
        if self.history.codes:
            await self._bring(self.one_of(self.history.codes[-4:]))

    async def _bring(self, code: Code) -> None:
        since = self.history.now()
        code.tries += 1
        is_first, earlier = code.tries == 1, code.session
        if earlier is not None:
            earlier.may_have_ended = True
        form = {"grant_type": "authorization_code", "code": code.text, "redirect_uri": CONSOLE_URI, **CONSOLE_PROOF}
        reply, verdict = await self.token(form)
        if verdict == "yes":
            assert code.session is None, "a code was good twice"
            code.session = self.begun(reply, code.login, since)
            code.session.may_have_ended |= not is_first or code.tries > 1
            ended = self.history.logged_out.get(code.login)
            assert ended is None or ended > since, "a code was good after its login had ended"
        elif verdict == "no" and earlier is not None:
            earlier.has_ended = True

    async def _connect_device(self) -> None:
        """Let a device in, or turn it away."""
        form = {"client_id": CLI, "scope": "openid"}
        begun = await self.send("POST", "/oauth2/v2/device_authorization", form=form, token="")
        login = await self._login()
        if begun.status != 200 or login is None:
            return
        browser, since = self._at_browser(), self.history.now()
        shown = await browser.get(DEVICE, {"user_code": begun.json["user_code"]})
        if self._noted("GET", DEVICE, shown).status != 200 or b'value="approve"' not in shown.body:
            return
        answer = self.one_of(("approve", "approve", "deny"))
        said = self._noted("POST", DEVICE, await browser.submit(shown, button=("decision", answer)))
        form = {"grant_type": DEVICE_GRANT, "device_code": begun.json["device_code"], "client_id": CLI}
        given: list[Session] = []
        for _ in range(2):
            reply, verdict = await self.token(form)
            if verdict == "yes":
                assert answer == "approve", "a device was let in that was turned away"
                given.append(self.begun(reply, "", since, is_public=True))
                assert len(given) == 1, "a device was let in twice"
            elif verdict == "no" and said.status == 200:
                expected = {"invalid_grant", "expired_token", "access_denied", "slow_down", "authorization_pending"}
                assert reply.json["error"] in expected, reply.json

    async def _end_session(self) -> None:
        """End a session by its button on the page of one's account."""
        browser = self._at_browser()
        page = self._noted("GET", ACCOUNT, await browser.get(ACCOUNT))
        forms = Forms.of(page) if page.status == 200 else []
        shown = {id_: place for place, form in enumerate(forms) for name, id_ in form.buttons if name == "session"}
        if not shown:
            return
        chosen = self.one_of(sorted(shown))
        mine = [each for each in self.history.sessions if each.id == chosen]
        for session in mine:
            session.may_have_ended = True
        reply = await browser.submit(page, button=("session", chosen), form=shown[chosen])
        if self._noted("POST", ACCOUNT, reply).status == 302:
            for session in mine:
                session.has_ended = True

    async def _log_out(self) -> None:
        """Log out in the browser, with every session that came of the login there."""
        login = await self._login()
        if login is None:
            return
        browser = self._at_browser()
        page = self._noted("GET", "/oauth2/v2/logout", await browser.get("/oauth2/v2/logout"))
        if page.status != 200 or b"<form" not in page.body:
            return
        mine = [each for each in self.history.sessions if each.login == login.name]
        self.history.leaving.add(login.name)
        for session in mine:
            session.may_have_ended = True
        done = self._noted("POST", "/oauth2/v2/logout", await browser.submit(page))
        if done.status < 400:
            self.history.logged_out[login.name] = self.history.now()
            for session in mine:
                session.has_ended = True

    async def _choose_password(self) -> None:
        """Have a link made, and choose a password by it: everybody who is logged in has to log in again."""
        guest = self.one_of(GUESTS)
        link = await self.send("POST", "/api/v1/passwords", {"subject": guest})
        if link.status != 201 or self.chance(0.2):
            return
        secret = parse_qs(urlsplit(link.json["link"]).query)["link"][0]
        chosen = f"{self.history.name('password')} of some length"
        self.history.secrets |= {secret, chosen}
        mine = [each for each in self.history.sessions if each.user == user_id(guest)]
        self.history.choosing[guest] += 1
        for session in mine:
            session.may_have_ended = True
        with self.history.asking({("password", "person", guest): chosen}) as asked:
            form = {"link": secret, "new_password": chosen, "repeated_password": chosen}
            reply = await self.send("POST", "/oauth2/v2/password", form=form, token="")
            asked.verdict = verdict_of(reply)
        if asked.verdict == "yes":
            for session in mine:
                session.has_ended = True
        self.history.choosing[guest] -= asked.verdict != "unclear"
        self.history.chosen[guest] = self.history.now()

    async def _login(self) -> BrowserLogin | None:
        """Return who is logged in in this browser, as the store has it."""
        if self._browser is None or COOKIE not in self._browser.cookies:
            return None
        wanted = token_hash(self._browser.cookies[COOKIE])
        found = await self.system.read(BrowserLogin)
        return next((each for each in found if each.spec.cookie_hash == wanted), None)

    def _at_browser(self) -> Browser:
        """Return the browser, which asks whichever process is at hand."""
        if self._browser is None:
            self._browser = Browser(self.system.client(None))
        self._browser.client = self.system.client(None)
        return self._browser

    def _noted(self, method: str, path: str, reply: Reply) -> Reply:
        return self.noted(method, path, reply)
