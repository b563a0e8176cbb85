"""Customers who are suspended, have second factors, are invited, and whose domain somebody claims."""

from datetime import timedelta
from typing import Any

from remuda.identity.kinds.tokens import Session as StoredSession
from remuda.identity.kinds.users import membership_id, user_id
from remuda.identity.operator_requests import seal_request
from remuda.identity.operator_tokens import new_request
from remuda.identity.rbac.roles import role_id
from tests.kit.asgi.contract import Reply
from tests.kit.identity.login import CONSOLE_URI, Browser, Forms, sent_to
from tests.kit.identity.second_factor import codes_of, key_of
from tests.kit.identity.software_authenticator import app_code
from tests.kit.sim_identity.customer import ORGANIZATIONS, UNAVAILABLE, Customer
from tests.kit.sim_identity.guarded import (
    CAREFUL,
    FACTOR,
    INVITED,
    INVITER,
    SUSPECT,
    SUSPENDED,
    Certainty,
    Credentials,
    unconsented,
)
from tests.kit.sim_identity.history import Key, claims_of, verdict_of
from tests.kit.sim_identity.sessions import CONSOLE_PROOF, TOKEN
from tests.kit.sim_identity.tenants import Tenants
from tests.kit.simulation.store import SEALER

SUSPENSIONS, RESETS = "/api/v1/suspensions", "/api/v1/secondfactorresets"
LOGIN, FACTORS, INVITATIONS = "/oauth2/v2/login", "/oauth2/v2/login/factor", "/oauth2/v2/invitations"
ENROLMENT, COMPLETION = "/oauth2/v2/enrolment", "/oauth2/v2/login/completion"
WRONG_CODE = "000000"


class Persons(Customer):
    """Persons, each in a browser of their own, and the platform administrator who decides about them."""

    async def act(self) -> None:
        """Do one thing."""
        acts = (
            *(self._suspend, self._resume, self._log_in_as_suspect, self._log_in_as_suspect, self.try_credentials),
            *(self._log_in_carefully, self._log_in_carefully, self._reset_factors),
            *(self._invite, self._decide, self._look_as_invited),
            *(self._approve, self._withdraw, self._route),
        )
        await self.one_of(acts)()

    async def try_credentials(self) -> None:
        """See that no token of a suspended person works, nor one of before a suspension."""
        for each in self.history.guarded.credentials[-6:]:
            before, is_over = self._sure(SUSPENDED), each.given < self.history.guarded.ended_before
            reply = await self.send("GET", "/api/v1/acl", token=each.access)
            assert not is_over or reply.status != 200, "a token works that a suspension has ended"
            self._check_suspended(before, reply.status == 200, "a token works")
            form = {"grant_type": "refresh_token", "refresh_token": each.refresh, **CONSOLE_PROOF}
            before, is_over = self._sure(SUSPENDED), each.given < self.history.guarded.ended_before
            reply = await self.send("POST", TOKEN, form=form, token="")
            assert not is_over or reply.status != 200, "a session is refreshed that a suspension has ended"
            self._check_suspended(before, reply.status == 200, "a session is refreshed")
            if reply.status == 200:
                each.access, each.refresh = reply.json["access_token"], reply.json["refresh_token"]
                self.history.secrets |= {each.access, each.refresh}

    async def _suspend(self) -> None:
        self.history.guarded.requests[SUSPENDED] += 1
        with self.history.asking({SUSPENDED: True}) as asked:
            body = {"subject": SUSPECT, "reason": "a stolen laptop"}
            _, asked.verdict = await self.write("POST", SUSPENSIONS, body)
        if asked.verdict == "yes":
            self.history.guarded.ended_before = max(self.history.guarded.ended_before, asked.since)
        await self.send("GET", SUSPENSIONS)

    async def _resume(self) -> None:
        self.history.guarded.requests[SUSPENDED] += 1
        with self.history.asking({SUSPENDED: False}) as asked:
            _, asked.verdict = await self.write("DELETE", f"{SUSPENSIONS}/{user_id(SUSPECT)}")

    async def _log_in_as_suspect(self) -> None:
        before = self._sure(SUSPENDED)
        _, page = await self._password(SUSPECT)
        self._check_suspended(before, page.status == 302, "a login succeeds")
        reply = await self._exchanged(page)
        self._check_suspended(before, reply is not None, "a code is exchanged")
        if reply is not None:
            given = Credentials(reply["access_token"], reply["refresh_token"], self.history.now())
            self.history.guarded.credentials.append(given)

    def _check_suspended(self, before: Certainty | None, is_let_in: bool, what: str) -> None:  # noqa: FBT001  what was seen
        is_suspended = before is not None and before.value is True and self._sure(SUSPENDED) == before
        assert not (is_suspended and is_let_in), f"{what} of a suspended person"

    async def _log_in_carefully(self) -> None:
        """Log in with a password and whatever is asked for then; perhaps with a wrong code, or with nothing more."""
        before = self._sure(FACTOR)
        browser, page = await self._password(CAREFUL)
        is_right = True
        if page.status == 200 and b'name="recovery_code"' in page.body:
            keys = self.history.guarded.app_keys
            is_right = bool(keys) and self.chance(0.7)
            code = app_code(self.one_of(keys[-2:]), self.system.machine.clock.now()) if is_right else WRONG_CODE
            place = next(number for number, form in enumerate(Forms.of(page)) if "code" in form.fields)
            page = self.noted("POST", FACTORS, await browser.submit(page, None, place, code=code))
        elif page.status == 200 and b'name="decline" value="yes"' in page.body:
            page = await self._enrol(browser, page)
        assert page.status != 302 or is_right, "a wrong code logs in"
        reply = await self._exchanged(page)
        if reply is None:
            return
        proof = await self._proof(reply["access_token"])
        is_sure = before is not None and before.value is True and self._sure(FACTOR) == before
        assert not is_sure or proof in {"factor", ""}, "a session without the second factor of its user"
        acl = await self.send("GET", "/api/v1/acl", token=reply["access_token"])
        has_roles = acl.status == 200 and bool(acl.json.get("global"))
        assert proof in {"factor", ""} or not has_roles, "a login without the factor has roles that require one"

    async def _enrol(self, browser: Browser, page: Reply) -> Reply:
        """Add an authenticator app, or go on without."""
        if self.chance(0.3):
            return self.noted("POST", ENROLMENT, await browser.submit(page, button=("decline", "yes")))
        form = self.noted("POST", ENROLMENT, await browser.submit(page, button=("kind", "app")))
        if form.status != 200 or b"<code>" not in form.body:
            return form
        key = key_of(form)
        self.history.guarded.app_keys.append(key)
        self.history.guarded.requests[FACTOR] += 1
        with self.history.asking({FACTOR: True}) as asked:
            shown = await browser.submit(form, code=app_code(key, self.system.machine.clock.now()))
            self.noted("POST", Forms.of(form)[0].action.removeprefix(self.system.settings.issuer), shown)
            asked.verdict = verdict_of(shown)
            if asked.verdict == "yes" and not codes_of(shown):
                asked.verdict = "unclear"
        if asked.verdict != "yes":
            return shown
        return self.noted("POST", COMPLETION, await browser.submit(shown))

    async def _reset_factors(self) -> None:
        if not self.chance(0.5):
            return
        self.history.guarded.requests[FACTOR] += 1
        with self.history.asking({FACTOR: False}) as asked:
            _, asked.verdict = await self.write("POST", RESETS, {"subject": CAREFUL})

    async def _proof(self, token: str) -> str:
        """Return how the login of a token was proven, as its session says; nothing if that cannot be read."""
        wanted = claims_of(token)["sid"]
        found = await self.system.read(StoredSession)
        return next((each.spec.proof for each in found if each.name == wanted), "")

    async def _invite(self) -> None:
        """Let an administrator of an organization enter somebody who was not asked."""
        organization = self.known("organization")
        if not organization:
            return
        home = f"{ORGANIZATIONS}/{organization}"
        administrator = {"spec": {"subject": INVITER, "state": "active", "groupIDs": []}}
        if (await self.send("POST", f"{home}/users", administrator)).status >= 400:
            return
        member = membership_id(organization, user_id(INVITER))
        spec = {"roleIDs": [role_id("administrator")], "userIDs": [member], "serviceAccountIDs": []}
        body = {"metadata": {"name": self.history.name("inviters")}, "spec": spec}
        if (await self.send("POST", f"{home}/groups", body)).status >= 400:
            return
        token = await self._token_of(INVITER)
        if token:
            entry = {"spec": {"subject": INVITED, "state": "active", "groupIDs": []}}
            await self.send("POST", f"{home}/users", entry, token=token)
            await self._look_as_inviter(organization, token)

    async def _look_as_inviter(self, organization: str, token: str) -> None:
        """See that nothing is shown of somebody who has not agreed."""
        is_hidden = unconsented(self.history.guarded, organization)
        listed = await self.send("GET", f"{ORGANIZATIONS}/{organization}/users", token=token)
        for each in listed.json if listed.status == 200 else ():
            if each["spec"]["subject"] == INVITED and is_hidden and unconsented(self.history.guarded, organization):
                assert "lastActive" not in each.get("status", {}), "an invitation shows when the person was active"

    async def _look_as_invited(self) -> None:
        """See that no organization gives anything to somebody who has not agreed."""
        token = await self._token_of(INVITED)
        if not token:
            return
        acl = await self.send("GET", "/api/v1/acl", token=token)
        userinfo = await self.send("GET", "/oauth2/v2/userinfo", token=token)
        found = [each["id"] for each in acl.json.get("organizations", ())] if acl.status == 200 else []
        if userinfo.status == 200:
            found += userinfo.json["https://unikorn-cloud.org/authz"]["orgIds"]
        wrong = [each for each in found if unconsented(self.history.guarded, each)]
        assert not wrong, f"{INVITED} has never agreed to be in {wrong}"

    async def _decide(self) -> None:
        """Log in, and accept or decline an invitation, or leave it."""
        browser, page = await self._password(INVITED)
        if page.status != 200 or b"/oauth2/v2/invitations" not in page.body:
            await self._exchanged(page)
            return
        buttons = [button for form in Forms.of(page) for button in form.buttons]
        accepts = [value for name, value in buttons if name == "accept"]
        choice = self.one_of((*("accept", "decline")[: 2 * bool(accepts)], "later", "later"))
        value = "yes" if choice == "later" else self.one_of(accepts)
        if choice == "accept":
            self.history.guarded.accepting.add(value)
        page = self.noted("POST", INVITATIONS, await browser.submit(page, button=(choice, value)))
        await self._exchanged(page)
        self.noted("GET", INVITATIONS, await browser.get(INVITATIONS))

    async def _approve(self) -> None:
        """Let a platform administrator approve a domain."""
        organization, domain = await self._claim()
        if organization and not domain:
            await Tenants(self.system).claim_domain(organization)
            organization, domain = await self._claim(organization)
        if domain:
            self.history.guarded.approvals[organization, domain] += 1
            path = f"{ORGANIZATIONS}/{organization}/domain/approval"
            if (await self.send("PUT", path, {"domain": domain})).status < UNAVAILABLE:
                self.history.guarded.answered[organization, domain] += 1

    async def _withdraw(self) -> None:
        approved = sorted(self.history.guarded.approvals)
        if not approved:
            return
        organization, domain = await self._claim(self.one_of(approved)[0])
        if not domain:
            return
        guarded, claim = self.history.guarded, (organization, domain)
        asked = guarded.approvals.get(claim, 0)
        is_quiet = asked == guarded.answered[claim]  # no request is under way that could still approve it
        reply = await self.send("DELETE", f"{ORGANIZATIONS}/{organization}/domain/approval")
        is_same = (await self._claim(organization))[1] == domain
        if reply.status == 204 and is_quiet and is_same and guarded.approvals.get(claim, 0) == asked:
            guarded.approvals.pop(claim, None)
            guarded.answered.pop(claim, None)

    async def _claim(self, organization: str = "") -> tuple[str, str]:
        """Return an organization, and the domain that it claims."""
        organization = organization or self.known("organization")
        if not organization:
            return "", ""
        found = await self.send("GET", f"{ORGANIZATIONS}/{organization}/domain")
        return organization, found.json["domain"] if found.status == 200 else ""

    async def _route(self) -> None:
        """Give an address without a password: only the owner of a proven domain has a provider for it."""
        domain = self.one_of(("acme.test", "apex.test"))
        browser = Browser(self.system.client(None))
        page = self.noted("GET", "/oauth2/v2/authorization", await browser.authorize(nonce="n"))
        if page.status != 200:
            return
        page = self.noted("POST", LOGIN, await browser.submit(page, email=f"somebody@{domain}"))
        is_routed = page.status == 302 or b"Log in at your organization?" in page.body
        may_be = any(claimed == domain for _, claimed in self.history.guarded.approvals)
        assert may_be or not is_routed, f"a login is routed by {domain}, which nobody has proven"

    async def _password(self, email: str) -> tuple[Browser, Reply]:
        """Log in with the password in a new browser, and return the page after it."""
        browser = Browser(self.system.client(None))
        page = self.noted("GET", "/oauth2/v2/authorization", await browser.authorize(nonce="n"))
        if page.status != 200:
            return browser, page
        page = await browser.submit(page, email=email, password=self.system.first_password)
        return browser, self.noted("POST", LOGIN, page)

    async def _exchanged(self, page: Reply) -> Any:
        """Exchange the code that a login gave; return the tokens, or None."""
        if page.status != 302 or "code" not in (sent := sent_to(page)):
            return None
        self.history.secrets.add(sent["code"])
        form = {"grant_type": "authorization_code", "code": sent["code"], "redirect_uri": CONSOLE_URI, **CONSOLE_PROOF}
        reply = await self.send("POST", TOKEN, form=form, token="")
        if reply.status != 200:
            return None
        self.history.secrets |= {reply.json["access_token"], reply.json["refresh_token"]}
        return reply.json

    async def _token_of(self, subject: str) -> str:
        """Return a token of somebody, as an operator on the machine has it made; nothing if that fails."""
        asked = new_request(
            clock=self.system.machine.clock,
            randomness=self._randomness,
            subject=subject,
            lifetime=timedelta(minutes=5),
            operator="root",
            reason="to see",
        )
        body = {"request": seal_request(asked, SEALER).reveal()}
        reply = await self.send("POST", "/api/v1/operator/tokens", body, token="")
        return str(reply.json["accessToken"]) if reply.status == 200 else ""

    def _sure(self, key: Key) -> Certainty | None:
        """Return what is surely the case, or None."""
        fact = self.history.facts[key]
        if fact.is_disputed or len(fact.possible) != 1:
            return None
        return Certainty(next(iter(fact.possible)), self.history.guarded.requests[key])
