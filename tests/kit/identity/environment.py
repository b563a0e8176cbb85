"""Running identity, with the organizations, users and accounts that a test creates over its API."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.server.access_log import AccessLog
from remuda.http.server.metrics import Metrics
from remuda.identity.app import TABLE, IdentityApp
from remuda.identity.kinds.users import User, UserSpec, membership_id, user_id
from remuda.identity.rbac.roles import role_id
from remuda.kernel.errors import NotFound
from remuda.kernel.secrets import Secret
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.http_server import Lines
from tests.kit.identity.service_credentials import certified

ISSUER = "https://remuda.test/identity"
ROOT = "root@remuda.test"
"""A platform administrator."""
LOOKER = "looker@remuda.test"
"""A platform reader."""
ORGANIZATIONS = "/api/v1/organizations"
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Account:
    """A service account, and its token."""

    id: str
    token: str


class IdentityEnvironment:
    """Identity, and everybody in it."""

    def __init__(self, app: IdentityApp, store: SqliteStore) -> None:
        self.app, self.store, self.clock = app, store, app.ports.clock
        self.lines = Lines()
        """The access log."""
        self.metrics = Metrics(CollectorRegistry(), [TABLE])
        observed = AccessLog(
            app.api, clock=self.clock, randomness=app.ports.randomness, metrics=self.metrics, sink=self.lines
        )
        self.asgi = Validated(observed, response_contract(TABLE))
        self.root = ""
        """The token of a platform administrator."""

    def client(self, token: str | None = None, **headers: str) -> Client:
        """Return the client of whoever has this token, or of nobody; with headers that it always sends."""
        return self.carrying({name.replace("_", "-"): value for name, value in headers.items()}, token)

    def carrying(self, headers: Mapping[str, str], token: str | None = None) -> Client:
        """Return a client that always sends these headers."""
        app: ASGIApp = Carrying(self.asgi, headers) if headers else self.asgi
        return Client(app=app, token=token)

    def service(self, name: str, *, impersonates: bool = False, **claim: Any) -> Client:
        """Return the client of a service that has a certificate; the claim says for whom it acts (`actor=…`)."""
        return self.carrying(certified(name, claim, impersonates=impersonates, now=self.clock.now()))

    async def service_token(self, name: str) -> str:
        """Return a token as a service gets it for a signed assertion."""
        return (await self.app.tokens.tokens.issue_for_service(name)).token.reveal()

    async def organization(self, name: str = "acme") -> str:
        """Make an organization and return its id."""
        body = {"metadata": {"name": name}, "spec": {"organizationType": "adhoc"}}
        return await self._made(ORGANIZATIONS, body, 202)

    async def project(self, organization: str, *groups: str, name: str = "project") -> str:
        """Make a project that lists these groups, and return its id."""
        body = {"metadata": {"name": name}, "spec": {"groupIDs": groups}}
        return await self._made(f"{ORGANIZATIONS}/{organization}/projects", body, 202)

    async def group(
        self,
        organization: str,
        *roles: str,
        users: Sequence[str] = (),
        accounts: Sequence[str] = (),
        name: str = "group",
    ) -> str:
        """Make a group of users (by their addresses) and service accounts, with roles by name; return its id."""
        members = [membership_id(organization, user_id(each)) for each in users]
        spec = {"roleIDs": [role_id(each) for each in roles], "serviceAccountIDs": accounts, "userIDs": members}
        body = {"metadata": {"name": name}, "spec": spec}
        return await self._made(f"{ORGANIZATIONS}/{organization}/groups", body, 201)

    async def user(self, subject: str, organization: str, *groups: str, state: str = "active") -> str:
        """Make somebody a member of an organization, in these groups; return the id of the membership."""
        spec = {"subject": subject, "state": state, "groupIDs": groups}
        return await self._made(f"{ORGANIZATIONS}/{organization}/users", {"spec": spec}, 201)

    async def member(self, subject: str, organization: str, *roles: str) -> str:
        """Make somebody a member, with roles in a group of its own; return a token."""
        groups = [await self.group(organization, *roles, name="of-one")] if roles else []
        await self.user(subject, organization, *groups)
        return await self.log_in(subject)

    async def account(self, organization: str, *groups: str, name: str = "robot") -> Account:
        """Make a service account in these groups."""
        body = {"metadata": {"name": name}, "spec": {"groupIDs": groups}}
        reply = await self.client(self.root).post(f"{ORGANIZATIONS}/{organization}/serviceaccounts", body)
        made = expect(reply, 201)
        return Account(made["metadata"]["id"], made["status"]["accessToken"])

    async def log_in(self, subject: str) -> str:
        """Begin a session for somebody, as a login does, and return its token. Who is nobody yet is made first."""
        resource, user = self.app.tokens, await self._person(subject)
        session = await resource.sessions.begin(user=user, client="console", scope="openid email")
        return (await resource.tokens.issue_for_session(user, session)).token.reveal()

    async def local(self, subject: str, password: str) -> None:
        """Give somebody a password. Who is nobody yet is made first."""
        user = await self._person(subject)
        await self.app.passwords.set_password(user.name, Secret(password))

    async def eventually(self, sentence: str, condition: Callable[[], Awaitable[bool]]) -> None:
        """Return when the condition holds; fail with the sentence when time is up."""
        deadline = self.clock.monotonic() + TIMEOUT_S
        while not await condition():
            assert self.clock.monotonic() < deadline, f"not within {TIMEOUT_S:g} s: {sentence}"
            await self.clock.sleep(0.02)

    def change_count(self) -> int:
        """Return a number that is another one as soon as anything stored is."""
        return self.store.change_counter([kind.type for kind in self.store.registry.kinds])

    async def _person(self, subject: str) -> User:
        """Return a user of the whole system, who may be in no organization."""
        try:
            return await self.store.get(User, user_id(subject))
        except NotFound:
            spec = UserSpec(subject=subject)
            return await self.store.create(User(metadata=Metadata(name=user_id(subject)), spec=spec))

    async def _made(self, path: str, body: Any, status: int) -> str:
        return str(expect(await self.client(self.root).post(path, body), status)["metadata"]["id"])


class Carrying:
    """An app whose every request has some headers more, as behind a proxy."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "headers": [*scope["headers"], *self._headers]}, receive, send)


def expect(reply: Reply, status: int) -> Any:
    """Return what an answer says, if it has this status."""
    assert reply.status == status, (reply.status, reply.body.decode())
    return reply.json if reply.body else None
