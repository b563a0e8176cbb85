"""Who has a domain.

An organization that wishes for a domain has it when the `Domain` object of that name is its own. There can be one such
object, so of two who wish for it at once one gets it, and the other is told by its conditions: nobody can log people of
a domain in at a provider of their own while somebody else has that domain. The controller of organizations makes these
objects, and removes those that are no longer wished for.
"""

from collections.abc import Sequence
from contextlib import suppress

from remuda.identity.kinds.tenancy import ORGANIZATION, Domain, DomainSpec, Organization, domain_id
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected
from remuda.kernel.text import folded
from remuda.resources import conventions as labels
from remuda.resources.crud import find_in
from remuda.store.contract import Store
from remuda.store.objects import Metadata


async def organization_of_domain(store: Store, domain: str) -> Organization | None:
    """Return the organization that has a domain, if one has it and still wants it."""
    try:
        owner = labels.organization_of(await store.get(Domain, domain_id(domain)))
        found = await store.get(Organization, owner)
    except NotFound:
        return None
    return found if folded(found.spec.domain) == folded(domain) and not found.is_deleting else None


async def domains_of(store: Store, organization: Organization) -> Sequence[Domain]:
    """Return what an organization has, wanted or not."""
    return (await store.list(Domain, labels={labels.ORGANIZATION: organization.name})).items


async def claim(store: Store, organization: Organization, domain: str) -> bool:
    """Get a domain for an organization, and tell whether it has it now."""
    metadata = Metadata(
        name=domain_id(domain),
        labels={labels.ORGANIZATION: organization.name},
        owner_references=(ORGANIZATION.owner(organization),),
    )
    try:
        await store.create(Domain(metadata=metadata, spec=DomainSpec(domain=domain)))
    except AlreadyExists:
        return await _has(store, organization, domain)
    except OwnerRejected:
        raise Conflict(ORGANIZATION.name, organization.name) from None  # it was marked since it was read
    return True


async def give_up(store: Store, domain: Domain) -> None:
    """Let a domain go."""
    with suppress(NotFound):  # another process that believes to lead was faster
        await store.delete(Domain, domain.name, uid=domain.uid)


async def _has(store: Store, organization: Organization, domain: str) -> bool:
    # If it was given up just now, that wakes those who wait for it.
    return await find_in(store, Domain, domain_id(domain), organization.name) is not None
