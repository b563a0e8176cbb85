"""Consent: which memberships count, and which organization has proven a domain.

An organization may enter any address. Unless a caller who may write the users of every organization has written it,
such a membership is an invitation: it gives the person nothing, and shows the organization nothing of the person. It
counts as soon as the person accepts it. It also counts while the address is in a domain that the organization has
proven to own, because then the organization issues the address.

Everything that asks what a user is a member of asks here.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from remuda.identity.kinds.tenancy import Domain, Organization, domain_id
from remuda.identity.kinds.users import OrganizationUser, User
from remuda.kernel.errors import NotFound
from remuda.kernel.text import folded
from remuda.resources.conventions import USER, organization_of
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record


def domain_of(email: str) -> str:
    """Return the domain of an address in lower case, or an empty string."""
    local, _, domain = folded(email.strip()).rpartition("@")
    return domain if local and domain else ""


async def owner_of_domain(store: Store, domain: str) -> Organization | None:
    """Return the organization that has proven to own a domain, and still requests it."""
    found = await find(store, Domain, domain_id(domain)) if domain else None
    if found is None or not found.is_proven:
        return None
    owner = await find(store, Organization, organization_of(found), include_deleting=False)
    return owner if owner is not None and folded(owner.spec.domain) == folded(domain) else None


async def is_issued_by(store: Store, organization: str, email: str) -> bool:
    """Return whether an address is in a domain that the organization has proven to own."""
    owner = await owner_of_domain(store, domain_of(email))
    return owner is not None and owner.name == organization


async def is_agreed(store: Store, membership: OrganizationUser, email: str) -> bool:
    """Return whether a membership of the user with this address counts."""
    return not membership.spec.invited or await is_issued_by(store, organization_of(membership), email)


async def agreed(store: Store, memberships: Sequence[OrganizationUser], email: str) -> Sequence[OrganizationUser]:
    """Return the memberships of the user with this address that count."""
    if not any(each.spec.invited for each in memberships):
        return memberships
    owner = await owner_of_domain(store, domain_of(email))
    proven = None if owner is None else owner.name
    return [each for each in memberships if not each.spec.invited or organization_of(each) == proven]


async def agreed_memberships(store: Store, user: str) -> Sequence[OrganizationUser]:
    """Return the memberships of a user that count, whatever their state."""
    found = (await store.list(OrganizationUser, labels={USER: user})).items
    return await agreed(store, found, await _email(store, user, found))


async def invitations(store: Store, user: User) -> Sequence[OrganizationUser]:
    """Return the memberships that a user can accept or decline."""
    found = (await store.list(OrganizationUser, labels={USER: user.name})).items
    counting = {each.name for each in await agreed(store, found, user.spec.subject)}
    return [each for each in found if each.name not in counting and not each.is_deleting]


async def accept(store: Store, membership: str, log: Sequence[Record] = ()) -> None:
    """Record that the person agrees to a membership. The rollback of an operation does not undo it."""

    async def write() -> None:
        found = await find(store, OrganizationUser, membership, include_deleting=False)
        if found is None or not found.spec.invited:
            return
        lock = found.spec.lock
        if lock is not None and lock.previous is not None:
            lock = replace(lock, previous=replace(lock.previous, invited=False))
        try:
            await store.update(replace(found, spec=replace(found.spec, invited=False, lock=lock)), log=log)
        except NotFound:  # the organization has withdrawn it
            return

    await retry_on_conflict(write)


async def _email(store: Store, user: str, memberships: Sequence[OrganizationUser]) -> str:
    if not any(each.spec.invited for each in memberships):
        return ""
    found = await find(store, User, user)
    return "" if found is None else found.spec.subject
