"""Reserved tags are a service's own, on everything in identity that has tags: nobody else sets or removes one."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.identity.kinds.oauth import OAuth2Client, OAuth2Provider
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import Group, ServiceAccount, User, user_id
from remuda.kernel.errors import Conflict
from remuda.kernel.tags import Tag
from remuda.store.objects import Resource
from tests.kit.asgi.client import Client
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.launch import running

RESERVED = {"name": "compute.unikorn-cloud.org/instance", "value": "i-1"}
PLANTED = Tag(RESERVED["name"], RESERVED["value"])
PLAIN = {"name": "team", "value": "red"}
OTHER = {"name": "team", "value": "blue"}
COMPUTE = "unikorn-compute"
REDIRECT = "https://app.example.com/callback"
ISSUER = "https://idp.example.com"
MADE = {200, 201, 202, 204}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A kind with tags: where it is made, of what, and what is stored of it."""

    kind: type[Resource]
    path: str
    spec: Mapping[str, Any]
    stored: Callable[[str], str] = str

    def body(self, *tags: Mapping[str, str]) -> dict[str, Any]:
        """Return a request with these tags."""
        return {"metadata": {"name": "one", "tags": tags}, "spec": dict(self.spec)}


def _in_organization(
    kind: type[Resource], path: str, **spec: Any
) -> Callable[[IdentityEnvironment], Coroutine[Any, Any, Tagged]]:
    async def make(identity: IdentityEnvironment) -> Tagged:
        return Tagged(kind=kind, path=f"{ORGANIZATIONS}/{await identity.organization()}/{path}", spec=spec)

    return make


async def _organizations(_: IdentityEnvironment) -> Tagged:
    return Tagged(kind=Organization, path=ORGANIZATIONS, spec={"organizationType": "adhoc"})


async def _clients(_: IdentityEnvironment) -> Tagged:
    return Tagged(kind=OAuth2Client, path="/api/v1/oauth2clients", spec={"redirectUris": [REDIRECT]})


async def _users(identity: IdentityEnvironment) -> Tagged:
    path = f"{ORGANIZATIONS}/{await identity.organization()}/users"
    spec = {"subject": "ann@example.com", "state": "active", "groupIDs": []}
    return Tagged(kind=User, path=path, spec=spec, stored=lambda _: user_id("ann@example.com"))


async def _allocations(identity: IdentityEnvironment) -> Tagged:
    organization = await identity.organization()
    path = f"{ORGANIZATIONS}/{organization}/projects/{await identity.project(organization)}/allocations"
    spec = {"kind": "server", "id": "one", "allocations": [{"kind": "servers", "committed": 1, "reserved": 0}]}
    return Tagged(kind=Allocation, path=path, spec=spec)


SUBJECTS = {
    "organizations": _organizations,
    "projects": _in_organization(Project, "projects", groupIDs=[]),
    "groups": _in_organization(Group, "groups", roleIDs=[], serviceAccountIDs=[], userIDs=[]),
    "users": _users,
    "service accounts": _in_organization(ServiceAccount, "serviceaccounts", groupIDs=[]),
    "providers": _in_organization(OAuth2Provider, "oauth2providers", issuer=ISSUER, clientID="us"),
    "clients": _clients,
    "allocations": _allocations,
}


def _is_refused(reply: Any) -> bool:
    assert reply.status in {422, *MADE}, reply.body
    return reply.status == 422 and RESERVED["name"] in reply.json["error_description"]


@pytest.mark.parametrize("name", SUBJECTS)
async def test_nobody_sets_a_services_tag_or_takes_it_away(name: str, tmp_path: Path) -> None:
    async with running(tmp_path) as identity:
        subject, root = await SUBJECTS[name](identity), identity.client(identity.root)
        before = (await identity.store.list(subject.kind)).items
        assert _is_refused(await root.post(subject.path, subject.body(PLAIN, RESERVED)))
        assert {each.name for each in (await identity.store.list(subject.kind)).items} == {each.name for each in before}

        made = expect(await root.post(subject.path, subject.body(PLAIN)), _status(subject))
        path = f"{subject.path}/{made['metadata']['id']}"
        stored = subject.stored(made["metadata"]["id"])
        assert _is_refused(await root.put(path, subject.body(RESERVED)))
        assert await _tags(identity, subject, stored) == {(PLAIN["name"], PLAIN["value"])}

        await _plant(identity, subject, stored)
        both = {(PLANTED.name, PLANTED.value), (PLAIN["name"], PLAIN["value"])}
        assert (await root.put(path, subject.body(PLAIN))).status in MADE, "what is left out stays"
        assert await _tags(identity, subject, stored) == both
        assert (await root.put(path, subject.body(PLAIN, RESERVED))).status in MADE, "as it was read"
        assert await _tags(identity, subject, stored) == both
        assert _is_refused(await root.put(path, subject.body({**RESERVED, "value": "i-2"})))
        assert (await root.put(path, subject.body(OTHER))).status in MADE
        own = PLAIN if name == "users" else OTHER
        assert await _tags(identity, subject, stored) == {(PLANTED.name, PLANTED.value), (own["name"], own["value"])}


async def test_a_service_sets_its_own_tag_and_takes_it_away(tmp_path: Path) -> None:
    async with running(tmp_path) as identity:
        subject = await _allocations(identity)
        theirs = {"name": "region.unikorn-cloud.org/server", "value": "s-1"}
        compute: Client = identity.service(COMPUTE, actor="ann@example.com")
        assert (await compute.post(subject.path, subject.body(theirs))).status == 422
        made = expect(await compute.post(subject.path, subject.body(RESERVED)), 201)
        path, name = f"{subject.path}/{made['metadata']['id']}", made["metadata"]["id"]
        assert await _tags(identity, subject, name) == {(PLANTED.name, PLANTED.value)}
        assert (await compute.put(path, subject.body(PLAIN))).status in MADE
        assert await _tags(identity, subject, name) == {(PLAIN["name"], PLAIN["value"])}


def _status(subject: Tagged) -> int:
    return 202 if subject.kind in {Organization, Project} else 201


async def _tags(identity: IdentityEnvironment, subject: Tagged, name: str) -> set[tuple[str, str]]:
    spec: Any = (await identity.store.get(subject.kind, name)).spec  # type: ignore[attr-defined]  # all of these have one
    return {(tag.name, tag.value) for tag in spec.tags}


async def _plant(identity: IdentityEnvironment, subject: Tagged, name: str) -> None:
    """Give something a tag of a service's, as that service would have."""

    async def planted() -> bool:
        found: Any = await identity.store.get(subject.kind, name)
        spec = msgspec.structs.replace(found.spec, tags=(*found.spec.tags, PLANTED))
        try:
            await identity.store.update(msgspec.structs.replace(found, spec=spec))
        except Conflict:
            return False
        return True

    await identity.eventually("nobody else is writing", planted)
