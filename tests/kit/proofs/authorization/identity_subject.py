"""Identity as the subject of its matrix: things in every place, three doors, and nobody at work but the callers."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from typing import Any

from msgspec.structs import replace

from remuda.identity.app import TABLE
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.operator_requests import seal_request
from remuda.identity.operator_tokens import new_request
from remuda.identity.tenancy.domains import domains_of, prove, release
from remuda.kernel.randomness import SystemRandomness
from remuda.resources.crud import find
from tests.kit.asgi.reference import response_contract
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.launch import running, serving
from tests.kit.proofs.authorization.identity_callers import CALLERS
from tests.kit.proofs.authorization.identity_credentials import IdentityCredentials, furnish, subject_of
from tests.kit.proofs.authorization.identity_operations import DOMAIN, ROWS, claimed_domain
from tests.kit.proofs.authorization.identity_rule import SPARE, SPARE_ORGANIZATION
from tests.kit.proofs.authorization.matrix import ABSENT, HOME, Caller, Row, Scope, Target
from tests.kit.proofs.authorization.service_methods import ServiceMethodTransport
from tests.kit.proofs.authorization.transports import ApiTransport, Request, SocketTransport, Transport
from tests.kit.simulation.disk import memory_directory
from tests.kit.simulation.store import SEALER

REFERENCE = "things.example.org/1"
_CLIENTS = "/api/v1/oauth2clients"
_APP = {"metadata": {"name": "app"}, "spec": {"redirectUris": ["https://app.example.com/callback"]}}


class IdentitySubject:
    """Identity, with everybody and everything in it."""

    rows: Sequence[Row] = ROWS
    callers: Sequence[Caller] = CALLERS

    def __init__(self, credentials: IdentityCredentials, secret: Mapping[str, str]) -> None:
        self.credentials, self.identity = credentials, credentials.identity
        self.transports: dict[str, Transport] = {
            "api": ApiTransport(self.identity.asgi, response_contract(TABLE), credentials),
            "port": ServiceMethodTransport(TABLE, self.identity.app.services, credentials),
        }
        self._secret = secret
        self._things: dict[tuple[str, Scope], str] = {}
        self._owners: dict[str, str] = {}
        """For what each allocation is."""
        self._counter = count()

    async def request(self, row: Row, target: Target) -> Request:
        """Return a request about this target."""
        values = {"name": f"n{next(self._counter)}", "reference": REFERENCE, "groups": ""}
        values["owner"] = values["name"]
        if target.named is not None:
            named = await self._named(target.named)
            values |= {"organizationID": named.organization, "projectID": named.project}
            if row.operation == "update_project":
                values["groups"] = " ".join(self.credentials.groups.get(named, ()))
            if row.path.startswith(DOMAIN):
                await self._claim(named.organization, is_approved=row.operation == "withdraw_domain_approval")
        if row.thing:
            values[row.thing] = ABSENT if target.holder is None else await self._find(row.thing, target.holder)
            values["owner"] = self._owners.get(values[row.thing], "nobody")
        if row.scope == "public":
            values |= self._secrets()
        return Request(row=row, values=values, query=target.query)

    def use_up(self, scope: Scope) -> None:
        """Forget what is in a place."""
        self._things = {key: name for key, name in self._things.items() if key[1] != scope}

    async def state(self) -> Any:
        """Return a number that changes with anything that is stored."""
        return self.identity.change_count()

    async def shown(self, row: Row, scope: Scope) -> str:
        """Return the id of something that a list must show to who may see this place."""
        things = {
            "list_providers": "providerID",
            "list_users": "userID",
            "list_service_accounts": "serviceAccountID",
            "list_groups": "groupid",
            "list_usage": "allocationID",
        }
        return await self._find(things[row.operation], scope)

    async def _named(self, scope: Scope) -> Scope:
        if scope == SPARE:
            return Scope(HOME.organization, await self.identity.project(HOME.organization))
        if scope == SPARE_ORGANIZATION:
            return Scope(await self.identity.organization(), ABSENT)
        return scope

    async def _claim(self, organization: str, *, is_approved: bool) -> None:
        """Let an organization claim a domain, which is approved or not. One that is not there claims nothing."""
        store, domain = self.identity.store, claimed_domain(organization)
        found = await find(store, Organization, organization)
        if found is None:
            return
        if found.spec.domain != domain:
            found = await store.update(replace(found, spec=replace(found.spec, domain=domain)))
        if is_approved:
            await prove(store, found, domain, "administrator", now=self.identity.clock.now())
        else:
            for each in await domains_of(store, found):
                await release(store, each)

    async def _find(self, thing: str, scope: Scope) -> str:
        if (thing, scope) not in self._things:
            make = self._suspend if thing == "suspensionID" else self._make
            self._things[thing, scope] = await make(thing, scope)
        return self._things[thing, scope]

    async def _make(self, thing: str, scope: Scope) -> str:
        organization, name = scope.organization, f"t{next(self._counter)}"
        inside = f"{ORGANIZATIONS}/{organization}"
        match thing:
            case "userID":
                return await self.identity.user(f"{name}@example.com", organization)
            case "serviceAccountID":
                return (await self.identity.account(organization)).id
            case "groupid":
                return await self.identity.group(organization)
            case "providerID":
                spec: Any = {"issuer": "https://idp.example.com", "clientID": "us"}
                return await self._post(f"{inside}/oauth2providers", {"metadata": {"name": name}, "spec": spec})
            case "clientID":
                return await self._post(_CLIENTS, _APP)
            case _:
                amounts: Any = [{"kind": "servers", "committed": 0, "reserved": 0}]
                spec = {"kind": "things.example.org", "id": name, "allocations": amounts}
                path = f"{inside}/projects/{scope.project}/allocations"
                made = await self._post(path, {"metadata": {"name": name}, "spec": spec})
                self._owners[made] = name
                return made

    async def _suspend(self, _thing: str, _scope: Scope) -> str:
        body = {"subject": f"s{next(self._counter)}@example.com"}
        return str(expect(await self.identity.client(self.identity.root).post("/api/v1/suspensions", body), 201)["id"])

    async def _post(self, path: str, body: Any) -> str:
        return str(expect(await self.identity.client(self.identity.root).post(path, body), 201)["metadata"]["id"])

    def _secrets(self) -> Mapping[str, str]:
        """Return what proves something where nobody is asked who it is."""
        asked = new_request(
            clock=self.identity.clock,
            randomness=SystemRandomness(),
            subject=subject_of("member"),
            lifetime=timedelta(minutes=1),
            operator="root",
            reason="the matrix",
        )
        return {
            **self._secret,
            "sealed": seal_request(asked, SEALER).reveal(),
            "subject_token": self.credentials.tokens["user"],
        }


@asynccontextmanager
async def identity() -> AsyncIterator[IdentitySubject]:
    """Run identity while the block runs, on a socket too."""
    with memory_directory() as directory:
        async with running(directory, is_quiet=True) as environment, _serving(environment) as subject:
            yield subject


@asynccontextmanager
async def _serving(environment: IdentityEnvironment) -> AsyncIterator[IdentitySubject]:
    credentials = await furnish(environment)
    made = expect(await environment.client(environment.root).post(_CLIENTS, _APP), 201)
    secret = {"client_id": made["metadata"]["id"], "client_secret": made["status"]["clientSecret"]}
    subject = IdentitySubject(credentials, secret)
    async with serving(environment) as address:
        transport = SocketTransport(f"http://{address}", TABLE, credentials)
        subject.transports["socket"] = transport
        try:
            yield subject
        finally:
            await transport.close()
