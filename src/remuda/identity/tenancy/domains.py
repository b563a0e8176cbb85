"""Ownership of domains.

An organization owns a domain when the `Domain` object of that name is its own. There can be only one such object, so of
two concurrent requests one succeeds, and the other organization reports it in its conditions. The controller of
organizations creates and removes these objects.
"""

from collections.abc import Sequence
from contextlib import suppress

from remuda.identity.kinds.tenancy import ORGANIZATION, Domain, DomainSpec, Organization, domain_id
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.conventions import organization_of
from remuda.resources.crud import find_in
from remuda.store.contract import Store
from remuda.store.objects import Metadata


async def organization_of_domain(store: Store, domain: str) -> Organization | None:
    """Return the organization that owns a domain and still requests it."""
    try:
        owner = organization_of(await store.get(Domain, domain_id(domain)))
        found = await store.get(Organization, owner)
    except NotFound:
        return None
    return found if folded(found.spec.domain) == folded(domain) and not found.is_deleting else None


async def domains_of(store: Store, organization: Organization) -> Sequence[Domain]:
    """Return the domains that an organization owns, desired or not."""
    return (await store.list(Domain, labels={ORGANIZATION_LABEL: organization.name})).items


async def claim(store: Store, organization: Organization, domain: str) -> bool:
    """Claim a domain for an organization, and return whether it owns it now."""
    metadata = Metadata(
        name=domain_id(domain),
        labels={ORGANIZATION_LABEL: organization.name},
        owner_references=(ORGANIZATION.owner(organization),),
    )
    try:
        await store.create(Domain(metadata=metadata, spec=DomainSpec(domain=domain)))
    except AlreadyExists:
        # If it is released just now, the event of that enqueues the waiting organizations.
        return await find_in(store, Domain, domain_id(domain), organization.name) is not None
    except OwnerRejected:
        raise Conflict(ORGANIZATION.name, organization.name) from None  # its deletion was requested meanwhile
    return True


async def release(store: Store, domain: Domain) -> None:
    with suppress(NotFound):  # another process, whose leadership has ended, has done it
        await store.delete(Domain, domain.name, uid=domain.uid)
