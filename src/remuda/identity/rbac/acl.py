"""Access lists: the permissions of a user, service account or service, from stored groups and configured bindings.

A user with bindings in the configuration has the global permissions of the bound roles, and no others; the
configuration can require a second factor for them, without which the user has no permissions. Any other user
has, in each organization with an active membership that the user agreed to, the organization permissions of its groups'
roles, and in each project that lists one of these groups the project permissions of that group's roles. A service
account is the same in its one organization. A service has the global permissions of its role.

The cost depends on the subject's own memberships, groups and projects only. An access list comes with the dependencies
that it was computed from, so that caches know when it is stale.

A binding names its issuer, so that an external issuer cannot create administrators. Roles bound to all users of an
issuer (`*`) grant reads only. Roles bound to a group of an issuer cannot grant writes to users, groups and roles, since
the issuer controls the group. A configuration that asks for more is rejected (Invalid).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from remuda.access.principal import EVERYWHERE, AccessList, OrganizationAccess, Permission
from remuda.identity.consent import agreed, domain_of
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.factors import LoginProof, meets_policy
from remuda.identity.kinds.tenancy import Domain, Organization, Project, domain_id
from remuda.identity.kinds.users import (
    Group,
    OrganizationUser,
    Role,
    RoleSpec,
    ServiceAccount,
    User,
    account_member,
    subject_member,
    user_member,
)
from remuda.identity.rbac.roles import BUILT_IN, PLATFORM_ADMINISTRATOR, RoleIndex, role_id
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import Invalid, Unauthenticated
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION, USER, organization_of
from remuda.resources.crud import find
from remuda.store.contract import Dependency, Store, indexed, labelled, named
from remuda.store.objects import Resource, ResourceT

_ALL_USERS = "*"
_ACCESS_ENDPOINTS = frozenset(
    f"identity:{resource}" for resource in ("users", "groups", "roles", "serviceaccounts", "oauth2providers")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRoles:
    """Ids of the roles that are bound to a user, by kind of binding."""

    by_name: frozenset[str] = frozenset()
    to_all_users: frozenset[str] = frozenset()
    by_group: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.by_name or self.to_all_users or self.by_group)


class Bindings:
    """Bindings of the configuration, validated as far as possible without stored roles."""

    def __init__(self, settings: IdentitySettings) -> None:
        self._ours = frozenset({"", LOCAL_ISSUER, settings.issuer})
        self._roles: dict[str, str] = {}
        """Configuration key at which each used role is named first."""
        self._users: dict[tuple[str, str], frozenset[str]] = {}
        self._groups: dict[tuple[str, str], frozenset[str]] = {}
        self._group_roles: dict[str, str] = {}
        self._systems: dict[str, str] = {}
        self.second_factor = settings.platform_second_factor
        """Logins that need a second factor for the permissions of bound roles."""
        self._add_administrators(settings)
        self._add_users(settings)
        self._add_groups(settings)
        self._add_systems(settings)

    def of_user(self, subject: str, issuer: str, groups: Sequence[str]) -> BoundRoles:
        """Return the roles bound to a user of an issuer (empty for our own) with these groups."""
        issuer_key = self._issuer(issuer)
        no_roles: frozenset[str] = frozenset()
        return BoundRoles(
            by_name=self._users.get((issuer_key, folded(subject.strip())), no_roles),
            to_all_users=self._users.get((issuer_key, _ALL_USERS), no_roles),
            by_group=no_roles.union(*(self._groups.get((issuer_key, group), no_roles) for group in groups)),
        )

    def of_system(self, name: str) -> str | None:
        """Return the id of the role of a configured service."""
        return self._systems.get(name)

    def is_ours(self, issuer: str) -> bool:
        return issuer in self._ours

    @property
    def roles(self) -> Iterable[tuple[str, str]]:
        """Names of all used roles, with the configuration key that names each first."""
        return self._roles.items()

    @property
    def group_roles(self) -> Iterable[tuple[str, str]]:
        """Names of the roles bound to groups of issuers, with their configuration keys."""
        return self._group_roles.items()

    def _add_administrators(self, settings: IdentitySettings) -> None:
        for number, subject in enumerate(settings.platform_administrators):
            key_path = f"platform_administrators[{number}]"
            _check_subject(key_path, subject)
            if subject == _ALL_USERS:
                raise Invalid(key_path, "matches all users", remedy="name each administrator by an e-mail address")
            self._bind_user("", subject, [PLATFORM_ADMINISTRATOR], key_path)

    def _add_users(self, settings: IdentitySettings) -> None:
        for number, binding in enumerate(settings.role_bindings):
            key_path = f"role_bindings[{number}]"
            self._check_issuer(f"{key_path}.issuer", binding.issuer)
            _check_subject(f"{key_path}.subject", binding.subject)
            if binding.subject == _ALL_USERS and binding.issuer in self._ours:
                remedy = "name each user, or an external issuer"
                raise Invalid(f"{key_path}.subject", "matches all users of our own issuer", remedy=remedy)
            self._bind_user(binding.issuer, binding.subject, binding.roles, f"{key_path}.roles")

    def _add_groups(self, settings: IdentitySettings) -> None:
        for number, binding in enumerate(settings.group_bindings):
            key_path = f"group_bindings[{number}]"
            self._check_issuer(f"{key_path}.issuer", binding.issuer)
            if binding.issuer in self._ours:
                remedy = "name an external issuer: local groups get their roles in their organization"
                raise Invalid(f"{key_path}.issuer", "is our own", remedy=remedy)
            if binding.group.strip() != binding.group or binding.group in {"", _ALL_USERS}:
                remedy = "name one group exactly as the issuer writes it"
                raise Invalid(f"{key_path}.group", "is not the name of one group", remedy=remedy)
            key = (binding.issuer, binding.group)
            self._groups[key] = self._groups.get(key, frozenset()) | self._named(binding.roles, f"{key_path}.roles")
            for role in binding.roles:
                self._group_roles.setdefault(role, f"{key_path}.roles")
                if role in BUILT_IN:
                    check_group_role(f"{key_path}.roles", role, BUILT_IN[role])

    def _add_systems(self, settings: IdentitySettings) -> None:
        for name, account in settings.system_accounts.items():
            (self._systems[name],) = self._named([account.role], f"system_accounts.{name}.role")

    def _bind_user(self, issuer: str, subject: str, roles: Sequence[str], key_path: str) -> None:
        key = (self._issuer(issuer), subject)
        self._users[key] = self._users.get(key, frozenset()) | self._named(roles, key_path)

    def _named(self, roles: Sequence[str], key_path: str) -> frozenset[str]:
        if not roles or not all(roles):
            raise Invalid(key_path, "names no role", remedy="name one, such as platform-reader")
        for role in roles:
            self._roles.setdefault(role, key_path)
        return frozenset(map(role_id, roles))

    def _issuer(self, issuer: str) -> str:
        return "" if issuer in self._ours else issuer

    def _check_issuer(self, key_path: str, issuer: str) -> None:
        parts = urlsplit(issuer)
        if issuer not in self._ours and not (parts.scheme in {"http", "https"} and parts.netloc):
            remedy = f"write {LOCAL_ISSUER} for our own, or the URL in the tokens of another"
            raise Invalid(key_path, "is not an issuer", remedy=remedy)


def is_for_groups(permission: Permission) -> bool:
    """Return whether a group of an external issuer may have this permission."""
    return permission.verb == "read" or permission.endpoint not in _ACCESS_ENDPOINTS


def check_group_role(key_path: str, role: str, spec: RoleSpec) -> None:
    """Raise Invalid if a role bound to a group of an issuer can write users, groups or roles."""
    for endpoint in _endpoints_beyond_groups(spec):
        remedy = "choose a role that only reads there, or bind users one by one"
        raise Invalid(key_path, f"binds a group to the role {role}, which writes {endpoint}", remedy=remedy)


def _endpoints_beyond_groups(spec: RoleSpec) -> Iterator[str]:
    for grant in spec.scopes.everywhere:
        if not all(is_for_groups(Permission(grant.name, verb)) for verb in grant.operations):
            yield grant.name


def _check_subject(key_path: str, subject: str) -> None:
    if not subject or subject != subject.strip():
        raise Invalid(key_path, "is empty or has surrounding spaces", remedy="write one e-mail address")
    if subject != subject.lower():
        raise Invalid(key_path, "has capital letters", remedy="write it in lower case")


@dataclass(frozen=True, slots=True)
class ResolvedAccess:
    """Access list of a subject, with its organizations."""

    access: AccessList
    dependencies: tuple[Dependency, ...] = field(compare=False, repr=False)
    """Objects that were read to compute it, beside the subject itself."""
    organizations: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    """Organizations that are closed to the subject: they require a second factor, which its login lacked. `EVERYWHERE`
    stands for the roles that are bound to it."""

    def restricted_to(self, organization: str) -> "ResolvedAccess":
        """Return the access of a user whom the provider of one organization authenticated: only there."""
        inside = self.access.organizations.get(organization)
        access = AccessList(organizations={} if inside is None else {organization: inside})
        organizations, closed = (
            tuple(filter(organization.__eq__, names)) for names in (self.organizations, self.closed)
        )
        return replace(self, access=access, organizations=organizations, closed=closed)


class _Reads:
    """Reads of the store, recorded as dependencies. Roles are always one: they are few and seldom change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dependencies: dict[Dependency, None] = {Role: None}

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        return tuple(self._dependencies)

    async def find(self, kind: type[ResourceT], name: str) -> ResourceT | None:
        self._dependencies[named(kind, name)] = None
        return await find(self._store, kind, name)

    async def labelled(self, kind: type[ResourceT], key: str, value: str) -> Sequence[ResourceT]:
        self._dependencies[labelled(kind, key, value)] = None
        return (await self._store.list(kind, labels={key: value})).items

    async def agreed(self, memberships: Sequence[OrganizationUser], email: str) -> Sequence[OrganizationUser]:
        """Return those that count: of invitations, that depends on the domain of the address and on its owner."""
        for each in memberships:
            if each.spec.invited:
                self._dependencies[named(Domain, domain_id(domain_of(email)))] = None
                self._dependencies[named(Organization, organization_of(each))] = None
        return await agreed(self._store, memberships, email)

    async def indexed(self, kind: type[ResourceT], index: str, value: str) -> Sequence[ResourceT]:
        self._dependencies[indexed(kind, index, value)] = None
        return (await self._store.list(kind, index=(index, value))).items


class AccessLists:
    """Computation of access lists from stored objects and configured bindings."""

    def __init__(self, store: Store, bindings: Bindings) -> None:
        self._store, self._bindings, self._roles = store, bindings, RoleIndex(store)

    async def of_user(self, user: User, issuer: str, groups: Sequence[str], proof: LoginProof) -> ResolvedAccess:
        """Return the access of a user whose login had this proof."""
        reads, bound = _Reads(self._store), self._bindings.of_user(user.spec.subject, issuer, groups)
        if bound and not meets_policy(self._bindings.second_factor, proof):
            return ResolvedAccess(AccessList(), (Role,), closed=(EVERYWHERE,))
        memberships, closed = await _memberships(reads, user, "factor" if bound else proof)
        organizations = tuple(map(organization_of, memberships))
        if bound:
            return ResolvedAccess(AccessList(everywhere=await self._bound(bound)), reads.dependencies, organizations)
        inside = {
            organization_of(each): await self._inside(reads, organization_of(each), self._members(user, each, issuer))
            for each in memberships
        }
        access = AccessList(organizations={name: found for name, (_, found) in inside.items()})
        return ResolvedAccess(access, reads.dependencies, organizations, closed)

    async def of_outsider(self, subject: str, issuer: str, groups: Sequence[str]) -> ResolvedAccess:
        """Return the access of a user whom only an external issuer knows."""
        bound = self._bindings.of_user(subject, issuer, groups)
        if bound and not meets_policy(self._bindings.second_factor, "provider"):
            return ResolvedAccess(AccessList(), (Role,), closed=(EVERYWHERE,))
        return ResolvedAccess(AccessList(everywhere=await self._bound(bound)), (Role,))

    async def of_account(self, account: ServiceAccount) -> ResolvedAccess:
        """Return the access of a service account. Without any group it has no permissions at all."""
        organization, reads = organization_of(account), _Reads(self._store)
        if await reads.find(Organization, organization) is None:
            return ResolvedAccess(AccessList(), reads.dependencies)
        is_in_a_group, found = await self._inside(reads, organization, [account_member(account.name)])
        access = AccessList(organizations={organization: found}) if is_in_a_group else AccessList()
        return ResolvedAccess(access, reads.dependencies, (organization,))

    async def of_system(self, name: str) -> ResolvedAccess:
        role = self._bindings.of_system(name)
        if role is None:
            raise Unauthenticated("service is not known")
        return await self.of_role(role)

    async def of_role(self, role: str) -> ResolvedAccess:
        """Return the access of a service in this process, which has the role with this id."""
        everywhere = (await self._roles.of(frozenset({role}))).everywhere
        return ResolvedAccess(AccessList(everywhere=everywhere), (Role,))

    def _members(self, user: User, membership: OrganizationUser, issuer: str) -> list[str]:
        """Return the index values of a user in groups: the membership and, for another issuer, also the subject."""
        if self._bindings.is_ours(issuer):
            return [user_member(membership.name)]
        return [user_member(membership.name), subject_member(issuer, user.spec.subject)]

    async def _bound(self, bound: BoundRoles) -> frozenset[Permission]:
        by_name, to_all_users, by_group = [
            (await self._roles.of(roles)).everywhere for roles in (bound.by_name, bound.to_all_users, bound.by_group)
        ]
        read = frozenset(each for each in to_all_users if each.verb == "read")
        return by_name | read | frozenset(filter(is_for_groups, by_group))

    async def _inside(
        self, reads: _Reads, organization: str, members: Sequence[str]
    ) -> tuple[bool, OrganizationAccess]:
        """Return whether a member is in any group of an organization, and its permissions there."""
        groups = await _groups(reads, organization, members)
        role_ids = frozenset(role for group in groups for role in group.spec.role_ids)
        permissions = (await self._roles.of(role_ids)).organization
        return bool(groups), OrganizationAccess(permissions, await self._projects(reads, organization, groups))

    async def _projects(
        self, reads: _Reads, organization: str, groups: Sequence[Group]
    ) -> dict[str, frozenset[Permission]]:
        role_ids: dict[str, frozenset[str]] = {}
        for group in groups:
            roles = frozenset(group.spec.role_ids)
            if not (await self._roles.of(roles)).project:
                continue
            for project in await reads.indexed(Project, "group", group.name):
                if _is_in(project, organization):
                    role_ids[project.name] = role_ids.get(project.name, frozenset()) | roles
        return {project: (await self._roles.of(roles)).project for project, roles in role_ids.items()}


async def _memberships(
    reads: _Reads, user: User, proof: LoginProof
) -> tuple[Sequence[OrganizationUser], tuple[str, ...]]:
    """Return the active memberships that the user agreed to, and organizations that are closed to such a login."""
    open_to_login, closed = list[OrganizationUser](), list[str]()
    found = await reads.labelled(OrganizationUser, USER, user.name)
    active = [each for each in found if each.spec.state == "active" and not each.is_deleting]
    for each in sorted(await reads.agreed(active, user.spec.subject), key=organization_of):
        organization = await reads.find(Organization, organization_of(each))
        if organization is None:
            continue
        if meets_policy(organization.spec.second_factor, proof):
            open_to_login.append(each)
        else:
            closed.append(organization.name)
    return open_to_login, tuple(closed)


async def _groups(reads: _Reads, organization: str, members: Sequence[str]) -> list[Group]:
    found: dict[str, Group] = {}
    for member in members:
        listed = await reads.indexed(Group, "member", member)
        found |= {each.name: each for each in listed if _is_in(each, organization) and not each.is_deleting}
    return list(found.values())


def _is_in(resource: Resource, organization: str) -> bool:
    return resource.metadata.labels.get(ORGANIZATION) == organization
