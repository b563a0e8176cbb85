"""Access lists: what somebody may do, and where.

A user whom the configuration binds to roles has what those allow everywhere, and nothing besides. Anybody else has, in
each organization with an active membership, what the roles of its groups allow in organizations, and in each project
that lists one of those groups what that group's roles allow in projects. A service account is the same with its one
organization. A service has what its role allows everywhere.

The cost is that of the subject's own memberships, groups and projects, however many others there are. What was read is
told besides, so that whoever keeps a list knows when it is good no more.

Roles that the configuration gives: to administrators, to users and groups of an issuer, and to services.

Whoever is bound has exactly what the bound roles allow everywhere, whatever groups here say. A binding names its
issuer, so an external issuer cannot make somebody an administrator of ours, nor the other way round. What is bound to
everybody of an issuer (`*`) only reads. What is bound to a group of an issuer never writes to who may do what: that
group is in somebody else's hands.

A configuration that asks for more is refused, with a sentence that names the place and the remedy (`Invalid`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from remuda.access.principal import AccessList, OrganizationAccess, Permission
from remuda.identity.kinds.roles import Role, RoleSpec
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import (
    Group,
    OrganizationUser,
    ServiceAccount,
    User,
    account_member,
    subject_member,
    user_member,
)
from remuda.identity.rbac.roles import BUILT_IN, PLATFORM_ADMINISTRATOR, RoleBook, role_id
from remuda.identity.settings import LOCAL_ISSUER, IdentitySettings
from remuda.kernel.errors import Invalid, Unauthenticated
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION, USER, organization_of
from remuda.resources.crud import exists
from remuda.store.contract import Dependency, Store, indexed, labelled, named
from remuda.store.objects import Resource, ResourceT

_EVERYBODY = "*"
_WHO_MAY_WHAT = frozenset(
    f"identity:{resource}" for resource in ("users", "groups", "roles", "serviceaccounts", "oauth2providers")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The ids of the roles that a user is bound to, by how."""

    by_name: frozenset[str] = frozenset()
    to_everybody: frozenset[str] = frozenset()
    by_group: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.by_name or self.to_everybody or self.by_group)


class Bindings:
    """The bindings of a configuration, checked for all that can be told without looking at stored roles."""

    def __init__(self, settings: IdentitySettings) -> None:
        self._ours = frozenset({"", LOCAL_ISSUER, settings.issuer})
        self._roles: dict[str, str] = {}
        """Where each role is named that a binding or a system account uses."""
        self._users: dict[tuple[str, str], frozenset[str]] = {}
        self._groups: dict[tuple[str, str], frozenset[str]] = {}
        self._group_roles: dict[str, str] = {}
        self._systems: dict[str, str] = {}
        self._take_administrators(settings)
        self._take_users(settings)
        self._take_groups(settings)
        self._take_systems(settings)

    def of_user(self, subject: str, issuer: str, groups: Sequence[str]) -> Bound:
        """Return what a user is bound to, as a user of an issuer (ours has the empty name) and of its groups."""
        by = self._issuer(issuer)
        nothing: frozenset[str] = frozenset()
        return Bound(
            by_name=self._users.get((by, folded(subject.strip())), nothing),
            to_everybody=self._users.get((by, _EVERYBODY), nothing),
            by_group=nothing.union(*(self._groups.get((by, group), nothing) for group in groups)),
        )

    def of_system(self, name: str) -> str | None:
        """Return the id of the role that a service has, if it is one of those that are configured."""
        return self._systems.get(name)

    def is_ours(self, issuer: str) -> bool:
        """Tell whether an issuer is this system itself."""
        return issuer in self._ours

    @property
    def roles(self) -> Iterable[tuple[str, str]]:
        """The names of all roles that are used, and where the configuration first names each."""
        return self._roles.items()

    @property
    def group_roles(self) -> Iterable[tuple[str, str]]:
        """The same of those that groups of an issuer have."""
        return self._group_roles.items()

    def _take_administrators(self, settings: IdentitySettings) -> None:
        for number, subject in enumerate(settings.platform_administrators):
            place = f"platform_administrators[{number}]"
            _check_subject(place, subject)
            if subject == _EVERYBODY:
                raise Invalid(place, "is everybody", remedy="name each administrator by an e-mail address")
            self._bind_user("", subject, [PLATFORM_ADMINISTRATOR], place)

    def _take_users(self, settings: IdentitySettings) -> None:
        for number, binding in enumerate(settings.role_bindings):
            place = f"role_bindings[{number}]"
            self._check_issuer(f"{place}.issuer", binding.issuer)
            _check_subject(f"{place}.subject", binding.subject)
            if binding.subject == _EVERYBODY and binding.issuer in self._ours:
                remedy = "name each user, or the external issuer whose users are all meant"
                raise Invalid(f"{place}.subject", "is everybody of our own issuer", remedy=remedy)
            self._bind_user(binding.issuer, binding.subject, binding.roles, f"{place}.roles")

    def _take_groups(self, settings: IdentitySettings) -> None:
        for number, binding in enumerate(settings.group_bindings):
            place = f"group_bindings[{number}]"
            self._check_issuer(f"{place}.issuer", binding.issuer)
            if binding.issuer in self._ours:
                remedy = "name an external issuer: groups of ours have their roles in their organization"
                raise Invalid(f"{place}.issuer", "is our own", remedy=remedy)
            if binding.group.strip() != binding.group or binding.group in {"", _EVERYBODY}:
                remedy = "name one group exactly as the issuer writes it"
                raise Invalid(f"{place}.group", "is not the name of one group", remedy=remedy)
            key = (binding.issuer, binding.group)
            self._groups[key] = self._groups.get(key, frozenset()) | self._named(binding.roles, f"{place}.roles")
            for role in binding.roles:
                self._group_roles.setdefault(role, f"{place}.roles")
                if role in BUILT_IN:
                    check_group_role(f"{place}.roles", role, BUILT_IN[role])

    def _take_systems(self, settings: IdentitySettings) -> None:
        for name, account in settings.system_accounts.items():
            (self._systems[name],) = self._named([account.role], f"system_accounts.{name}.role")

    def _bind_user(self, issuer: str, subject: str, roles: Sequence[str], place: str) -> None:
        key = (self._issuer(issuer), subject)
        self._users[key] = self._users.get(key, frozenset()) | self._named(roles, place)

    def _named(self, roles: Sequence[str], place: str) -> frozenset[str]:
        if not roles or not all(roles):
            raise Invalid(place, "names no role", remedy="name one, such as platform-reader")
        for role in roles:
            self._roles.setdefault(role, place)
        return frozenset(map(role_id, roles))

    def _issuer(self, issuer: str) -> str:
        return "" if issuer in self._ours else issuer

    def _check_issuer(self, place: str, issuer: str) -> None:
        parts = urlsplit(issuer)
        if issuer not in self._ours and not (parts.scheme in {"http", "https"} and parts.netloc):
            remedy = f"write {LOCAL_ISSUER} for our own, or the URL of another as its tokens have it"
            raise Invalid(place, "is no issuer", remedy=remedy)


def is_for_groups(permission: Permission) -> bool:
    """Tell whether a group that is in somebody else's hands may have this right."""
    return permission.verb == "read" or permission.endpoint not in _WHO_MAY_WHAT


def check_group_role(place: str, role: str, spec: RoleSpec) -> None:
    """Refuse to bind a group of another issuer to a role that writes to who may do what."""
    for endpoint in _endpoints_beyond_groups(spec):
        remedy = "choose a role that only reads there, or bind users one by one"
        raise Invalid(place, f"gives a group the role {role}, which writes {endpoint}", remedy=remedy)


def _endpoints_beyond_groups(spec: RoleSpec) -> Iterator[str]:
    for grant in spec.scopes.everywhere:
        if not all(is_for_groups(Permission(grant.name, verb)) for verb in grant.operations):
            yield grant.name


def _check_subject(place: str, subject: str) -> None:
    if not subject or subject != subject.strip():
        raise Invalid(place, "is empty or has blanks around it", remedy="write one e-mail address")
    if subject != subject.lower():
        raise Invalid(place, "has capital letters", remedy="write it in lower case")


@dataclass(frozen=True, slots=True)
class Standing:
    """What somebody may do, and where they are a member."""

    access: AccessList
    made_from: tuple[Dependency, ...] = field(compare=False, repr=False)
    """What was read to know this, beside the subject itself."""
    organizations: tuple[str, ...] = ()

    def only_in(self, organization: str) -> "Standing":
        """Return how somebody stands for whom one organization alone vouches: there as ever, elsewhere as nobody."""
        inside = self.access.organizations.get(organization)
        access = AccessList(organizations={} if inside is None else {organization: inside})
        return replace(self, access=access, organizations=tuple(filter(organization.__eq__, self.organizations)))


class _Reads:
    """Reads, and remembers what was read. Roles are always: they are few, and seldom change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: dict[Dependency, None] = {Role: None}

    @property
    def parts(self) -> tuple[Dependency, ...]:
        return tuple(self._parts)

    async def is_there(self, kind: type[ResourceT], name: str) -> bool:
        self._parts[named(kind, name)] = None
        return await exists(self._store, kind, name)

    async def labelled(self, kind: type[ResourceT], key: str, value: str) -> Sequence[ResourceT]:
        self._parts[labelled(kind, key, value)] = None
        return (await self._store.list(kind, labels={key: value})).items

    async def indexed(self, kind: type[ResourceT], index: str, value: str) -> Sequence[ResourceT]:
        self._parts[indexed(kind, index, value)] = None
        return (await self._store.list(kind, index=(index, value))).items


class AccessLists:
    """Works access lists out from what is stored and from what the configuration binds."""

    def __init__(self, store: Store, bindings: Bindings) -> None:
        self._store, self._bindings, self._roles = store, bindings, RoleBook(store)

    async def of_user(self, user: User, issuer: str, groups: Sequence[str]) -> Standing:
        """Return how a user stands, as one of an issuer and its groups."""
        reads = _Reads(self._store)
        memberships = await _memberships(reads, user)
        organizations = tuple(map(organization_of, memberships))
        bound = self._bindings.of_user(user.spec.subject, issuer, groups)
        if bound:
            return Standing(AccessList(everywhere=await self._bound(bound)), reads.parts, organizations)
        inside = {
            organization_of(each): await self._inside(reads, organization_of(each), self._members(user, each, issuer))
            for each in memberships
        }
        access = AccessList(organizations={name: found for name, (_, found) in inside.items()})
        return Standing(access, reads.parts, organizations)

    async def of_outsider(self, subject: str, issuer: str, groups: Sequence[str]) -> Standing:
        """Return how somebody stands whom only an issuer knows."""
        bound = self._bindings.of_user(subject, issuer, groups)
        return Standing(AccessList(everywhere=await self._bound(bound)), (Role,))

    async def of_account(self, account: ServiceAccount) -> Standing:
        """Return how a service account stands. One without any group has no rights at all, not even to be told so."""
        organization, reads = organization_of(account), _Reads(self._store)
        if not await reads.is_there(Organization, organization):
            return Standing(AccessList(), reads.parts)
        is_in_a_group, found = await self._inside(reads, organization, [account_member(account.name)])
        access = AccessList(organizations={organization: found}) if is_in_a_group else AccessList()
        return Standing(access, reads.parts, (organization,))

    async def of_system(self, name: str) -> Standing:
        role = self._bindings.of_system(name)
        if role is None:
            raise Unauthenticated("service is not known")
        everywhere = (await self._roles.of(frozenset({role}))).everywhere
        return Standing(AccessList(everywhere=everywhere), (Role,))

    def _members(self, user: User, membership: OrganizationUser, issuer: str) -> list[str]:
        """Return as what a user is in groups: by membership, and as one of another issuer also by that one's word."""
        if self._bindings.is_ours(issuer):
            return [user_member(membership.name)]
        return [user_member(membership.name), subject_member(issuer, user.spec.subject)]

    async def _bound(self, bound: Bound) -> frozenset[Permission]:
        by_name, to_everybody, by_group = [
            (await self._roles.of(roles)).everywhere for roles in (bound.by_name, bound.to_everybody, bound.by_group)
        ]
        read = frozenset(each for each in to_everybody if each.verb == "read")
        return by_name | read | frozenset(filter(is_for_groups, by_group))

    async def _inside(
        self, reads: _Reads, organization: str, members: Sequence[str]
    ) -> tuple[bool, OrganizationAccess]:
        """Return whether a member is in any group of an organization, and what it may do there."""
        groups = await _groups(reads, organization, members)
        held = frozenset(role for group in groups for role in group.spec.role_ids)
        permissions = (await self._roles.of(held)).organization
        return bool(groups), OrganizationAccess(permissions, await self._projects(reads, organization, groups))

    async def _projects(
        self, reads: _Reads, organization: str, groups: Sequence[Group]
    ) -> dict[str, frozenset[Permission]]:
        held: dict[str, frozenset[str]] = {}
        for group in groups:
            roles = frozenset(group.spec.role_ids)
            if not (await self._roles.of(roles)).project:
                continue
            for project in await reads.indexed(Project, "group", group.name):
                if _is_in(project, organization):
                    held[project.name] = held.get(project.name, frozenset()) | roles
        return {project: (await self._roles.of(roles)).project for project, roles in held.items()}


async def _memberships(reads: _Reads, user: User) -> list[OrganizationUser]:
    found = await reads.labelled(OrganizationUser, USER, user.name)
    active = [each for each in found if each.spec.state == "active" and not each.is_deleting]
    there = [each for each in active if await reads.is_there(Organization, organization_of(each))]
    return sorted(there, key=organization_of)


async def _groups(reads: _Reads, organization: str, members: Sequence[str]) -> list[Group]:
    found: dict[str, Group] = {}
    for member in members:
        listed = await reads.indexed(Group, "member", member)
        found |= {each.name: each for each in listed if _is_in(each, organization) and not each.is_deleting}
    return list(found.values())


def _is_in(resource: Resource, organization: str) -> bool:
    return resource.metadata.labels.get(ORGANIZATION) == organization
