"""Customers who check everything, try every token they know of, and register clients."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from remuda.identity.oauth.exchange import ACCESS_TOKEN_TYPE, TOKEN_EXCHANGE
from remuda.identity.operator_requests import seal_request
from remuda.identity.operator_tokens import new_request
from tests.kit.asgi.contract import Reply
from tests.kit.identity.login import CONSOLE, request
from tests.kit.sim_identity.customer import ORGANIZATIONS, Customer
from tests.kit.sim_identity.guests import GUESTS
from tests.kit.sim_identity.history import GONE, THERE, Payer, Token, claims_of
from tests.kit.sim_identity.sessions import CONSOLE_PROOF, TOKEN
from tests.kit.simulation.store import SEALER

CLIENTS = "/api/v1/oauth2clients"
EVERYWHERE = (
    *("/api/v1/acl", "/api/v1/oauth2providers", "/api/v1/revocations", "/api/v1/audit", CLIENTS, "/api/version"),
    *("/oauth2/v2/jwks", "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"),
    *("/.well-known/openid-protected-resource", "/oauth2/v2/password", "/oidc/callback"),
    *("/api/v1/projects", ORGANIZATIONS),
)
INSIDE = ("", "/acl", "/roles", "/quotas", "/allocations", "/audit", "/oauth2providers")
LISTS = {"projects": "project", "groups": "group", "users": "user", "serviceaccounts": "account"}


class Readers(Customer):
    """Whoever looks."""

    async def act(self) -> None:
        """Do one thing."""
        acts = (self._try_token, self._try_token, self._try_token, self._look, self._list, self._register, self._issue)
        await self.one_of(acts)()

    async def try_all(self) -> None:
        """Try every token there is, in every way."""
        for token in self.history.tokens:
            for way in range(len(_WAYS)):
                await self._try(token, way)

    async def _try_token(self) -> None:
        if self.history.tokens:
            await self._try(self.one_of(self.history.tokens), self._randomness.randrange(len(_WAYS)))

    async def _try(self, token: Token, way: int) -> None:
        """See that a token is good exactly for as long as it should be."""
        offset = self.system.clock_offset
        may, surely = self.system.may_be_good(token), self.system.is_surely_good(token)
        is_good = await _WAYS[way](self, token)
        if is_good is None or self.system.clock_offset != offset:
            return
        if is_good:
            assert may or self.system.may_be_good(token), f"a token is good that should not be: {token}"
        else:
            assert not (surely and self.system.is_surely_good(token)), f"a token is not good that should be: {token}"

    async def by_name(self, token: Token) -> bool | None:
        """Ask for something as whoever has the token."""
        return _is_let_in(await self.send("GET", "/api/version", token=token.text))

    async def by_userinfo(self, token: Token) -> bool | None:
        """Ask who one is."""
        return _is_let_in(await self.send("GET", "/oauth2/v2/userinfo", token=token.text))

    async def by_form(self, token: Token) -> bool | None:
        """Ask the same in a form."""
        form = {"access_token": token.text}
        return _is_let_in(await self.send("POST", "/oauth2/v2/userinfo", form=form, token=""))

    async def by_passport(self, token: Token) -> bool | None:
        """Have a token exchanged for a passport, as a service does that was shown it."""
        form = {"grant_type": TOKEN_EXCHANGE, "subject_token": token.text, "subject_token_type": ACCESS_TOKEN_TYPE}
        return _is_let_in(await self.send("POST", TOKEN, form=form, token=""))

    async def by_introspection(self, token: Token) -> bool | None:
        """Ask what a token is good for, as the client that it was given to."""
        if token.claims.get("cid") != CONSOLE:
            return None
        form = {"token": token.text, **CONSOLE_PROOF}
        reply = await self.send("POST", "/oauth2/v2/introspect", form=form, token="")
        return bool(reply.json["active"]) if reply.status == 200 else None

    async def _look(self) -> None:
        """Read something."""
        organization = self.known("organization")
        paths = list(EVERYWHERE)
        if organization:
            paths += [f"{ORGANIZATIONS}/{organization}{each}" for each in INSIDE]
        for kind, plural in (("project", "projects"), ("group", "groups")):
            if id_ := self.known(kind):
                home = f"{ORGANIZATIONS}/{self.history.known[kind][id_].organization}/{plural}/{id_}"
                paths += [home, f"{home}/quotas"] if kind == "project" else [home]
        path = self.one_of(paths)
        reply = await self.send("GET", path)
        if path.endswith("/quotas") and reply.status == 200:
            assert all(each["used"] <= each["quantity"] for each in reply.json["quotas"] if each["quantity"])
        if self.chance(0.1):
            await self.send("POST", "/oauth2/v2/authorization", form=request(), token="")

    async def _list(self) -> None:
        """Hear of everything in an organization, also of what nobody was told of."""
        organization, plural = self.known("organization"), self.one_of(sorted(LISTS))
        if not organization:
            return
        reply = await self.send("GET", f"{ORGANIZATIONS}/{organization}/{plural}")
        for each in reply.json if reply.status == 200 else ():
            if "deletionTime" not in each["metadata"]:
                self.history.known[LISTS[plural]].setdefault(each["metadata"]["id"], Payer(organization))

    async def _register(self) -> None:
        """Register a client, give it another secret, change it, forget it, or see whether its secret is good."""
        client = self.known("client")
        if not client or self.chance(0.2):
            await self._make_client()
        elif self.chance(0.4):
            await self._try_client(client)
        elif self.chance(0.4):
            await self._rotate_client(client)
        elif self.chance(0.5):
            name = self.history.name("client")
            with self.history.asking({("name", "client", client): name}) as asked:
                _, asked.verdict = await self.write("PUT", f"{CLIENTS}/{client}", _client(name))
        else:
            await self.send("GET", f"{CLIENTS}/{client}")
            with self.history.asking({(THERE, "client", client): GONE}) as asked:
                _, asked.verdict = await self.write("DELETE", f"{CLIENTS}/{client}")

    async def _make_client(self) -> None:
        since, name = self.history.now(), self.history.name("client")
        reply, verdict = await self.write("POST", CLIENTS, _client(name))
        if verdict == "yes":
            secret = reply.json["status"].get("clientSecret", "")
            shown = {"secret": secret} if secret else {}
            self.history.made("client", reply.json["metadata"]["id"], Payer(), since=since, name=name, **shown)
            self.history.secrets |= set(shown.values())
        elif verdict == "no":
            self.history.refused.add(name)

    async def _rotate_client(self, client: str) -> None:
        with self.history.asking({("secret", "client", client): f"rotation {self.history.now()}"}) as asked:
            reply, asked.verdict = await self.write("POST", f"{CLIENTS}/{client}/rotate")
            if asked.verdict == "yes":
                secret = reply.json["status"]["clientSecret"]
                asked.reveal(secret)
                self.history.secrets.add(secret)
                self.history.spent[client].append(secret)

    async def _try_client(self, client: str) -> None:
        """See that the last secret of a client is good, and none before it."""
        fact, spent = self.history.facts["secret", "client", client], self.history.spent[client]
        shown = self.one_of([*spent, *sorted(map(str, fact.possible))])
        before, was_gone = fact.possible, self.history.may_be_gone("client", client)
        form = {"client_id": client, "client_secret": shown, "scope": "openid"}
        reply = await self.send("POST", "/oauth2/v2/device_authorization", form=form, token="")
        after = before | fact.possible
        if reply.status == 200:
            assert shown in after, "a client's secret is good that should not be"
        elif reply.status == 401:
            is_sure = after == {shown} and not (was_gone or self.history.may_be_gone("client", client))
            assert not is_sure, "a client's secret is not good that should be"

    async def _issue(self) -> None:
        """Have a token made as an operator on the machine does."""
        asked = new_request(
            clock=self.system.machine.clock,
            randomness=self._randomness,
            subject=self.one_of(GUESTS),
            lifetime=timedelta(minutes=self.one_of((1, 30))),
            operator="root",
            reason="to see",
        )
        body = {"request": seal_request(asked, SEALER).reveal()}
        reply = await self.send("POST", "/api/v1/operator/tokens", body, token="")
        if reply.status == 200:
            text = reply.json["accessToken"]
            self.history.tokens.append(Token(text, claims_of(text)))
            self.history.secrets.add(text)


_WAYS = (Readers.by_name, Readers.by_userinfo, Readers.by_form, Readers.by_passport, Readers.by_introspection)


def _is_let_in(reply: Reply) -> bool | None:
    return {200: True, 401: False}.get(reply.status)


def _client(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"redirectUris": [f"https://client.test/?{urlencode({'at': name})}"]}}
