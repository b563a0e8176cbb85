"""Tenancies at OpenStack: a project with its user, roles, application credential, quotas, server group and key pair.

Keystone limits the names of projects to 64 characters, so a project has a digest of the tenancy's name as its name, and
the name itself as its description. Every step finds what an earlier attempt created, by name. The secret of the
application credential is stored elsewhere, sealed; if it is lost, the credential is created again.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol, TypeVar

import msgspec

from remuda.kernel.errors import Inconsistent, NotFound
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import InUse
from remuda.providers.contract.networks import Tenancy
from remuda.providers.openstack.client import CloudSession, OpenStackClient
from remuda.providers.openstack.errors import ApiError, LoginRejected
from remuda.providers.openstack.logins import ApplicationCredential, PasswordLogin
from remuda.providers.openstack.quotas import lift_quotas, restore_quotas

T = TypeVar("T")

TENANCY_TAG = "remuda"
IMAGES_TAG = "remuda-images"
"""Tag of the project of a tenancy that was removed, as long as images belong to it: Glance never changes an owner."""
OWN_PROJECT = "region"
"""Description of the region's own project."""
MANAGER_ROLES = ("manager", "member")
MEMBER_ROLES = ("member",)
"""Roles of a tenancy's own user. Keystone lets the manager of a domain grant no other but `reader` and `manager`."""

_NOT_FOUND, _CONFLICT = 404, 409
_DEFAULT_GROUP = "default"
_PASSWORD_BYTES = 32
_REVOCATION_S = 1.1


class CredentialStore(Protocol):
    """Application credentials by tenancy, kept sealed."""

    async def find(self, tenancy: str) -> ApplicationCredential | None: ...
    async def put(self, tenancy: str, credential: ApplicationCredential) -> None: ...
    async def remove(self, tenancy: str) -> None: ...


class Manager(msgspec.Struct, frozen=True):
    """Account that manages the region's domain."""

    user: str
    domain: str
    password: Secret


class _Named(msgspec.Struct, frozen=True):
    id: str
    name: str


class _Project(msgspec.Struct, frozen=True):
    id: str
    name: str
    description: str | None = ""
    tags: tuple[str, ...] = ()


class _Id(msgspec.Struct, frozen=True):
    id: str


class _KeyPair(msgspec.Struct, frozen=True):
    name: str
    public_key: str


class _Owned(msgspec.Struct, frozen=True):
    id: str
    name: str = ""


class _NewCredential(msgspec.Struct, frozen=True):
    id: str
    secret: str


def project_name(tenancy: str) -> str:
    """Return the name of a tenancy's project and of its user."""
    return f"remuda-{hashlib.sha256(tenancy.encode()).hexdigest()[:40]}"


class TenancyAccess:
    """Sessions in the projects of tenancies, as the manager or as the tenancy's own user."""

    def __init__(self, client: OpenStackClient, manager: Manager, credentials: CredentialStore) -> None:
        self.client, self.credentials, self._manager = client, credentials, manager
        self._projects: dict[str, str] = {}
        self._roles: dict[str, str] = {}
        self._own: str | None = None
        self._creating = asyncio.Lock()

    @property
    def domain(self) -> CloudSession:
        """CloudSession of the manager in its domain."""
        login = PasswordLogin(self._manager.user, self._manager.password, domain=self._manager.domain)
        return self.client.session(login)

    @property
    def domain_id(self) -> str:
        return self._manager.domain

    @property
    def manager_id(self) -> str:
        return self._manager.user

    async def project(self, tenancy: str) -> str:
        """Return the id of a tenancy's project, or raise NotFound."""
        found = self._projects.get(tenancy)
        if found is None:
            project = await self.find_project(tenancy)
            if project is None:
                raise NotFound("tenancy", tenancy)
            found = self._projects[tenancy] = project.id
        return found

    async def find_project(self, tenancy: str) -> _Project | None:
        name = project_name(tenancy)
        found = await self.domain.items(
            "identity", "/projects", "projects", _Project, domain_id=self.domain_id, name=name
        )
        return only([each for each in found if each.name == name], "tenancy", tenancy, "project")

    async def own(self) -> CloudSession:
        """Return the manager's session in the region's own project, which has the images and sees the catalogue."""
        if self._own is None:
            async with self._creating:
                self._own = self._own or await self._own_project()
        return self.manager_in(self._own)

    async def _own_project(self) -> str:
        project = await self.find_project(OWN_PROJECT)
        if project is None:
            body = {"name": project_name(OWN_PROJECT), "domain_id": self.domain_id, "description": OWN_PROJECT}
            project = await self.domain.post("identity", "/projects", {"project": body}, "project", _Project)
        await self.grant(project.id, self.manager_id, MANAGER_ROLES)
        return project.id

    async def grant(self, project: str, user: str, roles: Sequence[str]) -> None:
        """Give a user roles in a project."""
        for role in roles:
            if role not in self._roles:
                self._roles = {
                    each.name: each.id for each in await self.domain.items("identity", "/roles", "roles", _Named)
                }
            if role not in self._roles:
                raise NotFound("role", role)
            await self.domain.put("identity", f"/projects/{project}/users/{user}/roles/{self._roles[role]}")

    def forget(self, tenancy: str) -> None:
        project = self._projects.pop(tenancy, None)
        if project is not None:
            self.client.forget(self._in_project(project))

    def manager_in(self, project: str) -> CloudSession:
        """Return the session of the manager in a project."""
        return self.client.session(self._in_project(project))

    async def member(self, tenancy: str) -> CloudSession:
        """Return the session of the tenancy's own user, or raise NotFound before it was created."""
        credential = await self.credentials.find(tenancy)
        if credential is None:
            raise NotFound("tenancy", tenancy)
        return self.client.session(credential)

    def _in_project(self, project: str) -> PasswordLogin:
        return PasswordLogin(self._manager.user, self._manager.password, project=project)

    async def sessions(self) -> AsyncIterator[tuple[str, str, CloudSession]]:
        """Yield each tenancy with its project and the session of the manager in it."""
        for each in await self.projects():
            session = self.manager_in(each.id)
            try:
                await session.services()
            except LoginRejected:  # its create stopped before the manager had a role in it
                try:
                    await self.grant(each.id, self.manager_id, MANAGER_ROLES)
                except ApiError as error:
                    if error.http_status != _NOT_FOUND:
                        raise
                    continue  # it was removed meanwhile
            yield each.description or "", each.id, session

    async def has_images(self, project: str) -> bool:
        query = {"owner": project, "visibility": "all", "limit": 1}
        return bool(await self.manager_in(project).items("image", "/images", "images", _Id, **query))

    async def remove_without_images(self, project: str) -> None:
        """Remove the project of a removed tenancy with its last image."""
        found = await self.domain.get("identity", f"/projects/{project}", "project", _Project)
        if IMAGES_TAG in found.tags and not await self.has_images(project):
            await self.domain.delete("identity", f"/projects/{project}")

    async def projects(self) -> Sequence[_Project]:
        projects = await self.domain.items(
            "identity", "/projects", "projects", _Project, domain_id=self.domain_id, tags=TENANCY_TAG
        )
        for each in projects:
            self._projects[each.description or ""] = each.id
        return projects


class OpenStackTenancies:
    """Capability of managing tenancies."""

    def __init__(self, access: TenancyAccess, randomness: Randomness, *, group_policy: str = "") -> None:
        self._access, self._randomness = access, randomness
        self._group_policy = group_policy or "soft-anti-affinity"

    async def converge_tenancy(self, desired: Tenancy) -> None:
        project = await self._converge_project(desired)
        await self._access.grant(project, self._access.manager_id, MANAGER_ROLES)
        await lift_quotas(self._access.manager_in(project), project)
        user, password = await self._converge_user(desired.name)
        await self._access.grant(project, user, MEMBER_ROLES)
        if await self._access.credentials.find(desired.name) is None:
            await self._create_credential(desired.name, project, user, password)
        member = await self._access.member(desired.name)
        await self._converge_group(member, desired.name)
        await self._converge_key(member, desired)

    async def find_tenancy(self, name: str) -> Tenancy | None:
        project = await self._access.find_project(name)
        return None if project is None or TENANCY_TAG not in project.tags else await self._tenancy(project)

    async def remove_tenancy(self, name: str) -> None:
        project = await self._access.find_project(name)
        if project is None or TENANCY_TAG not in project.tags:
            await self._access.credentials.remove(name)
            return
        manager = self._access.manager_in(project.id)
        await self._access.grant(
            project.id, self._access.manager_id, MANAGER_ROLES
        )  # a create may have stopped before this
        await self._reject_contents(manager, name, project.id)
        for group in await manager.items("compute", "/os-server-groups", "server_groups", _Named):
            await manager.delete("compute", f"/os-server-groups/{group.id}")
        user = await self._find_user(name)
        if user is not None:
            owner = await self._own_session(name, project.id, user)
            await owner.delete("compute", f"/os-keypairs/{project.name}")
            await self._access.domain.delete("identity", f"/users/{user}")
        await restore_quotas(manager, project.id)
        if await self._access.has_images(project.id):
            await self._access.domain.put("identity", f"/projects/{project.id}/tags", {"tags": [IMAGES_TAG]})
        else:
            await self._access.domain.delete("identity", f"/projects/{project.id}")
        self._access.forget(name)
        await self._access.credentials.remove(name)

    async def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        yield [await self._tenancy(each) for each in await self._access.projects()]

    async def _tenancy(self, project: _Project) -> Tenancy:
        name = project.description or ""
        labels = dict(each.partition("=")[::2] for each in project.tags)
        return Tenancy(
            name=name,
            organization=labels.get("organization", ""),
            project=labels.get("project", ""),
            public_key=await self._public_key(name, project),
        )

    async def _public_key(self, name: str, project: _Project) -> str:
        try:
            member = await self._access.member(name)
            pair = await member.get("compute", f"/os-keypairs/{project.name}", "keypair", _KeyPair)
        except NotFound:
            return ""
        except ApiError as error:
            if error.http_status == _NOT_FOUND:
                return ""
            raise
        return pair.public_key

    async def _converge_project(self, desired: Tenancy) -> str:
        tags = sorted([TENANCY_TAG, f"organization={desired.organization}", f"project={desired.project}"])
        project = await self._access.find_project(desired.name)
        if project is None:
            body = {
                "name": project_name(desired.name),
                "domain_id": self._access.domain_id,
                "description": desired.name,
                "tags": tags,
            }
            try:
                created: _Project = await self._access.domain.post(
                    "identity", "/projects", {"project": body}, "project", _Project
                )
            except ApiError as error:
                if error.http_status != _CONFLICT:
                    raise
                return await self._access.project(desired.name)  # created by another attempt meanwhile
            return created.id
        if sorted(project.tags) != tags:
            await self._access.domain.put("identity", f"/projects/{project.id}/tags", {"tags": tags})
        return project.id

    async def _find_user(self, tenancy: str) -> str | None:
        name = project_name(tenancy)
        found = await self._access.domain.items(
            "identity", "/users", "users", _Named, domain_id=self._access.domain_id, name=name
        )
        user = only([each for each in found if each.name == name], "tenancy", tenancy, "user")
        return None if user is None else user.id

    async def _converge_user(self, tenancy: str) -> tuple[str, Secret | None]:
        """Return the user, and the password if the user is new."""
        found = await self._find_user(tenancy)
        if found is not None:
            return found, None
        password = self._new_password()
        body = {
            "name": project_name(tenancy),
            "domain_id": self._access.domain_id,
            "description": tenancy,
            "password": password.reveal(),
        }
        created: _Named = await self._access.domain.post("identity", "/users", {"user": body}, "user", _Named)
        return created.id, password

    async def _create_credential(self, tenancy: str, project: str, user: str, password: Secret | None) -> None:
        owner = await self._log_in(project, user, password)
        path = f"/users/{user}/application_credentials"
        for each in await owner.items("identity", path, "application_credentials", _Named):
            await owner.delete("identity", f"{path}/{each.id}")  # its secret was lost before it was stored
        body = {"name": project_name(tenancy), "roles": [{"name": role} for role in MEMBER_ROLES]}
        created: _NewCredential = await owner.post(
            "identity", path, {"application_credential": body}, "application_credential", _NewCredential
        )
        await self._access.credentials.put(tenancy, ApplicationCredential(created.id, Secret(created.secret)))
        self._access.client.forget(owner.login)

    async def _own_session(self, tenancy: str, project: str, user: str) -> CloudSession:
        """Return a session of the tenancy's user, even if its credential was never stored."""
        credential = await self._access.credentials.find(tenancy)
        if credential is not None:
            return self._access.client.session(credential)
        await self._access.grant(project, user, MEMBER_ROLES)
        return await self._log_in(project, user, None)

    async def _log_in(self, project: str, user: str, password: Secret | None) -> CloudSession:
        """Log in with the password of a new user, or else with another one, which no other client knows."""
        if password is None:
            password = self._new_password()
            await self._access.domain.patch("identity", f"/users/{user}", {"user": {"password": password.reveal()}})
            # Keystone revokes the user's tokens of the whole second in which the password changes.
            await self._access.client.clock.sleep(_REVOCATION_S)
        return self._access.client.session(PasswordLogin(user, password, project=project))

    def _new_password(self) -> Secret:
        return Secret(self._randomness.token_bytes(_PASSWORD_BYTES).hex())

    async def _converge_group(self, member: CloudSession, tenancy: str) -> None:
        name = project_name(tenancy)
        groups = await member.items("compute", "/os-server-groups", "server_groups", _Named)
        if only([each for each in groups if each.name == name], "tenancy", tenancy, "server group") is None:
            body = {"server_group": {"name": name, "policy": self._group_policy}}
            await member.post("compute", "/os-server-groups", body)

    async def _converge_key(self, member: CloudSession, desired: Tenancy) -> None:
        name = project_name(desired.name)
        project = _Project(id="", name=name)
        found = await self._public_key(desired.name, project)
        if found == desired.public_key:
            return
        if found:
            await member.delete("compute", f"/os-keypairs/{name}")
        if desired.public_key:
            body = {"name": name, "public_key": desired.public_key}
            await member.post("compute", "/os-keypairs", {"keypair": body})

    @staticmethod
    async def _reject_contents(manager: CloudSession, tenancy: str, project: str) -> None:
        """Raise InUse while the project contains anything of a user."""
        if await manager.items("compute", "/servers", "servers", _Owned, limit=1):
            raise InUse("tenancy", tenancy)
        for kind in ("networks", "ports", "routers", "floatingips", "security-groups"):
            key = kind.replace("-", "_")
            found = await manager.items("network", f"/{kind}", key, _Owned, project_id=project, fields=["id", "name"])
            if [each for each in found if each.name != _DEFAULT_GROUP]:
                raise InUse("tenancy", tenancy)


def only(found: Sequence[T], kind: str, name: str, part: str) -> T | None:
    """Return the one object of this name, or None; raise Inconsistent rather than guess between several."""
    if len(found) > 1:
        raise Inconsistent(kind, name, part=part, found=len(found))
    return found[0] if found else None
