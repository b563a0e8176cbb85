"""Everything in identity that has to do with secrets, done once, with every secret on the list."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from remuda.identity.bootstrap import BootstrapRun, BootstrapSettings, FirstLogin
from remuda.identity.credentials import CredentialsFile
from remuda.identity.operator_passwords import PasswordRequest
from remuda.identity.operator_requests import request_of, seal_request
from remuda.identity.operator_tokens import new_request
from remuda.kernel.randomness import SystemRandomness
from tests.kit.asgi.client import Client
from tests.kit.identity.canaries import Canaries, Heard
from tests.kit.identity.environment import ISSUER, ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.login import Browser, request, sent_to
from tests.kit.identity.oauth import CHALLENGE, VERIFIER
from tests.kit.identity.service_credentials import assertion
from tests.kit.simulation.store import SEALER

ANN, PASSWORD, WRONG = "ann@example.com", "canary one: Correct horse!", "canary two: battery staple"
CHOSEN = "canary three: a better password"
CALLBACK = "https://app.example.com/callback"
CLIENTS, TOKEN, LOGIN = "/api/v1/oauth2clients", "/oauth2/v2/token", "/oauth2/v2/login"
WATCHED = (CLIENTS, ORGANIZATIONS, "/api/v1/revocations")
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@dataclass
class Scene:
    """Identity with an ear to everything it says."""

    identity: IdentityEnvironment
    heard: Heard
    canaries: Canaries

    def ask(self, token: str | None = None) -> Client:
        """Return somebody's client."""
        return Client(app=self.heard, token=token)

    @property
    def root(self) -> Client:
        """The client of a platform administrator."""
        return self.ask(self.identity.root)

    @asynccontextmanager
    async def watching(self, *paths: str) -> AsyncIterator[None]:
        """Follow lists for the time of a block, in which each has to tell of a change."""
        async with AsyncExitStack() as stack:
            streams = [
                (await stack.enter_async_context(self.root.stream(path, {"watch": "true"}))).chunks() for path in paths
            ]
            for chunks in streams:
                await _told(chunks, b"synced")
            yield
            for chunks in streams:
                await _told(chunks, b"event: added", b"event: modified")

    async def token(self, form: Mapping[str, str], status: int = 200) -> Any:
        """Ask the token endpoint, and look out for what comes."""
        reply = expect(await self.ask().post(TOKEN, form=form), status)
        for name in reply.keys() & {"access_token", "refresh_token", "id_token"}:
            self.canaries.add(reply[name], f"POST {TOKEN}")
            self.canaries.add(reply[name].split(".")[-1], f"POST {TOKEN}")
        return reply

    async def bootstrap(self, directory: Path) -> None:
        """Go through a first start, with a password of the configuration's and one that is made."""
        app, welcomes = self.identity.app, list[FirstLogin]()
        first = BootstrapRun(
            store=app.ports.store,
            clock=app.ports.clock,
            randomness=app.ports.randomness,
            run_blocking=app.ports.run_blocking,
            tokens=app.tokens.tokens,
            passwords=app.passwords,
            settings=BootstrapSettings(administrator=ANN),
            credentials=CredentialsFile(directory / "credentials.json"),
            endpoint=ISSUER,
        )
        await first.run(welcomes.append)
        (welcome,) = welcomes
        assert welcome.password is not None
        self.canaries.add(welcome.password.reveal())
        written = CredentialsFile(welcome.credentials).read()
        assert written is not None
        self.canaries.add(written.token.reveal())
        assert welcome.password.reveal() not in repr(welcome)

    async def accounts_and_clients(self) -> dict[str, str]:
        """Make everything that has a secret, and rotate what can be; return a client."""
        organization = await self.identity.organization()
        accounts = f"{ORGANIZATIONS}/{organization}/serviceaccounts"
        robot = {"metadata": {"name": "robot"}, "spec": {"groupIDs": []}}
        made = expect(await self.root.post(accounts, robot, idempotency_key="once"), 201)
        await self.root.post(accounts, robot, idempotency_key="once")
        rotated = expect(await self.root.post(f"{accounts}/{made['metadata']['id']}/rotate"), 200)
        self.canaries.add(made["status"]["accessToken"], f"POST {accounts}")
        self.canaries.add(rotated["status"]["accessToken"], f"POST {accounts}/{made['metadata']['id']}/rotate")
        await self.ask(made["status"]["accessToken"]).get(accounts)
        providers = f"{ORGANIZATIONS}/{organization}/oauth2providers"
        spec = {
            "issuer": "https://idp.example.com",
            "clientID": "us",
            "clientSecret": self.canaries.add("provider-canary-1"),
        }
        async with self.watching(providers):
            provider = expect(await self.root.post(providers, {"metadata": {"name": "idp"}, "spec": spec}), 201)
            spec["clientSecret"] = self.canaries.add("provider-canary-2")
            path = f"{providers}/{provider['metadata']['id']}"
            expect(await self.root.put(path, {"metadata": {"name": "idp"}, "spec": spec}), 200)
        expect(await self.root.get(providers), 200)
        return await self._client()

    async def _client(self) -> dict[str, str]:
        wanted = {"metadata": {"name": "app"}, "spec": {"redirectUris": [CALLBACK]}}
        made = expect(await self.root.post(CLIENTS, wanted), 201)
        path = f"{CLIENTS}/{made['metadata']['id']}"
        self.canaries.add(made["status"]["clientSecret"], f"POST {CLIENTS}")
        rotated = expect(await self.root.post(f"{path}/rotate"), 200)["status"]["clientSecret"]
        self.canaries.add(rotated, f"POST {path}/rotate")
        expect(await self.root.get(path), 200)
        return {"client_id": made["metadata"]["id"], "client_secret": rotated}

    async def log_in(self, client: dict[str, str]) -> Browser:
        """Log in by password after some wrong attempts, and use all that comes of it."""
        await self.identity.local(ANN, self.canaries.add(PASSWORD))
        browser = Browser(self.ask())
        asked = {"code_challenge": CHALLENGE, "code_challenge_method": "S256", "redirect_uri": CALLBACK}
        page = await browser.get("/oauth2/v2/authorization", request(client_id=client["client_id"], **asked))
        for email in (ANN, "nobody@example.com"):
            wrong = await browser.submit(page, email=email, password=self.canaries.add(WRONG))
            assert wrong.status == 401
        sent = await browser.submit(page, email=ANN, password=PASSWORD)
        code = self.canaries.add(sent_to(sent)["code"], f"POST {LOGIN}")
        for cookie in browser.cookies.values():
            self.canaries.add(cookie, f"POST {LOGIN}")
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, **client}
        verifier = self.canaries.add("wrong-verifier-canary-" + "x" * 43)
        await self.token({**form, "code_verifier": verifier}, 400)
        page = await browser.get("/oauth2/v2/authorization", request(client_id=client["client_id"], **asked))
        sent = await browser.submit(page, button=("continue_as_current", "yes"))
        code = self.canaries.add(sent_to(sent)["code"], f"POST {LOGIN}")
        tokens = await self.token({**form, "code": code, "code_verifier": self.canaries.add(VERIFIER)})
        await self._use(tokens, client)
        return browser

    async def _use(self, tokens: dict[str, str], client: dict[str, str]) -> None:
        refresh = {"grant_type": "refresh_token", **client}
        newer = await self.token({**refresh, "refresh_token": tokens["refresh_token"]})
        kind = "urn:ietf:params:oauth:token-type:access_token"
        shown = {"subject_token": newer["access_token"], "subject_token_type": kind}
        await self.token({"grant_type": EXCHANGE, **shown})
        expect(await self.ask(newer["access_token"]).get("/oauth2/v2/userinfo"), 200)
        for path in ("introspect", "revoke"):
            shown = {"token": newer["access_token"], **client}
            expect(await self.ask().post(f"/oauth2/v2/{path}", form=shown), 200)
        expect(await self.ask(newer["access_token"]).get("/api/v1/acl"), 401)
        await self.token({**refresh, "refresh_token": tokens["refresh_token"]}, 400)

    async def connect_device(self, browser: Browser, client: dict[str, str]) -> None:
        """Let a device in."""
        path = "/oauth2/v2/device_authorization"
        device = expect(await self.ask().post(path, form=client), 200)
        self.canaries.add(device["device_code"], f"POST {path}")
        self.canaries.add(device["user_code"], f"POST {path}", "POST /oauth2/v2/device")
        page = await browser.submit(await browser.get("/oauth2/v2/device"), user_code=device["user_code"])
        done = await browser.submit(page, button=("decision", "approve"))
        assert done.status == 200, done.body
        await self.token({"grant_type": DEVICE, "device_code": device["device_code"], **client})

    async def choose_password(self) -> None:
        """Choose another password by a link, and change that one."""
        made = expect(await self.root.post("/api/v1/passwords", {"subject": ANN}), 201)
        link = self.canaries.add(
            made["link"].partition("link=")[2], "POST /api/v1/passwords", "GET /oauth2/v2/password"
        )
        browser = Browser(self.ask())
        page = await browser.get("/oauth2/v2/password", {"link": link})
        chosen = self.canaries.add(CHOSEN)
        assert (await browser.submit(page, new_password=chosen, repeated_password=chosen)).status == 200
        form = {"email": ANN, "password": WRONG, "new_password": chosen, "repeated_password": chosen}
        assert (await browser.post("/oauth2/v2/password", form)).status == 401

    async def break_glass(self) -> None:
        """Be an operator on the machine."""
        path, clock = "/api/v1/operator/tokens", self.identity.clock
        asked = new_request(
            clock=clock,
            randomness=SystemRandomness(),
            subject=ANN,
            lifetime=timedelta(minutes=5),
            operator="root",
            reason="because",
        )
        sealed = self.canaries.add(seal_request(asked, SEALER).reveal())
        made = expect(await self.ask().post(path, {"request": sealed}), 200)
        self.canaries.add(made["accessToken"], f"POST {path}")
        expect(await self.ask(made["accessToken"]).get("/api/v1/acl"), 200)
        expect(await self.ask().post(path, {"request": sealed}), 401)
        path = "/api/v1/operator/passwords"
        lost = request_of(
            PasswordRequest, clock=clock, randomness=SystemRandomness(), subject=ANN, operator="root", reason="because"
        )
        sealed = self.canaries.add(seal_request(lost, SEALER).reveal())
        made = expect(await self.ask().post(path, {"request": sealed}), 200)
        self.canaries.add(made["link"].rpartition("=")[2], f"POST {path}")
        expect(await self.ask().post(path, {"request": sealed}), 401)

    async def be_a_service(self) -> None:
        """Prove who one is, twice with the same assertion."""
        proof = self.canaries.add(assertion(audience=ISSUER, now=self.identity.clock.now()))
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": proof,
        }
        await self.token(form)
        await self.token(form, 401)

    async def send_nonsense(self) -> None:
        """Send what looks like secrets wherever there could be one."""
        canary = self.canaries.add("canary-that-nobody-may-see-0123456789")
        nowhere = Client(app=self.heard, token=canary)
        for path in ("/api/v1/acl", "/oauth2/v2/userinfo", "/api/v1/organizations"):
            assert (await nowhere.get(path)).status == 401
            assert (await nowhere.get(path, {"access_token": canary})).status >= 400
            assert (await self.ask().get(path, authorization=f"Basic {canary}")).status >= 400
            assert (await self.ask().get(path, cookie=f"__Host-remuda-browser={canary}")).status >= 400
        for name in ("code", "refresh_token", "client_secret", "subject_token", "device_code", "client_assertion"):
            await self.token({"grant_type": canary, name: canary}, 400)
        body = {"metadata": {"name": canary}, "spec": {"issuer": [canary], "clientSecret": {"a": canary}}}
        refused = await self.root.post(f"{ORGANIZATIONS}/{await self.identity.organization()}/oauth2providers", body)
        assert refused.status == 400
        assert (await self.ask().post("/api/v1/operator/tokens", {"request": canary})).status == 401

    async def read_all(self) -> None:
        """Read what was written down about all of it."""
        expect(await self.root.get("/api/v1/audit", {"limit": "1000"}), 200)
        for organization in expect(await self.root.get(ORGANIZATIONS), 200):
            path = f"{ORGANIZATIONS}/{organization['metadata']['id']}"
            for list_ in ("audit", "users", "serviceaccounts", "groups", "oauth2providers"):
                expect(await self.root.get(f"{path}/{list_}"), 200)
        expect(await self.root.get(CLIENTS), 200)
        expect(await self.root.get("/api/v1/revocations"), 200)


async def _told(chunks: AsyncIterator[bytes], *events: bytes) -> None:
    """Return when one of these has come."""
    async with asyncio.timeout(120):
        async for chunk in chunks:
            if any(event in chunk for event in events):
                return
    raise AssertionError(f"the stream ended without {events}")
