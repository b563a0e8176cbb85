"""Ownership of domains: claim, proof, and the record that proves it.

An organization claims a domain in its spec. That has no effect, and any number of organizations may claim the same. It
owns the domain when the `Domain` object of that name is its own and has a proof: a TXT record in the DNS, which only
the owner of the domain can publish, or the word of a platform administrator. There can be only one such object, so of
two organizations that prove a domain at the same time one succeeds. It ends with the claim.

The value of the record names the organization, the domain and this system, so a record that was published for another
of them proves nothing. It is no secret: who publishes it says that the organization may have the domain.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from remuda.access.checks import require_everywhere, require_in_organization
from remuda.access.principal import Context
from remuda.identity.kinds.tenancy import DOMAIN, ORGANIZATION, Domain, DomainSpec, Organization, domain_id
from remuda.identity.names import permission
from remuda.identity.tenancy.schema import DomainApproval, DomainRead, TxtRecord
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, OwnerRejected
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.conventions import organization_of
from remuda.resources.crud import find, find_in, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

PROVEN = "DomainProven"
"""Condition of an organization that claims a domain."""

Proof = Literal["dns", "administrator"]

_LABEL = "_remuda-challenge"
_VALUE = "remuda-domain-verification="
_DIGITS = 40


def txt_record(issuer: str, organization: Organization) -> TxtRecord:
    """Return the record that proves the claim of an organization; `issuer` is our own."""
    domain = folded(organization.spec.domain)
    named = f"{issuer}\n{organization.name}\n{organization.uid}\n{domain}"
    digest = hashlib.sha256(named.encode()).hexdigest()[:_DIGITS]
    return TxtRecord(name=f"{_LABEL}.{domain}", type="TXT", value=f"{_VALUE}{digest}")


async def find_proven(store: Store, domain: str) -> Domain | None:
    """Return the `Domain` of this name, if it is proven."""
    found = await find(store, Domain, domain_id(domain))
    return found if found is not None and found.is_proven else None


async def domains_of(store: Store, organization: Organization) -> Sequence[Domain]:
    """Return the domains that an organization owns, claimed or not."""
    return (await store.list(Domain, labels={ORGANIZATION_LABEL: organization.name})).items


async def prove(
    store: Store,
    organization: Organization,
    domain: str,
    proof: Proof,
    *,
    now: datetime,
    log: Sequence[Record] = (),
) -> bool:
    """Record that an organization has proven a domain, and return whether it owns it now."""
    spec = DomainSpec(domain=domain, proof=proof, proven=now)
    found = await find(store, Domain, domain_id(domain))
    if found is not None and organization_of(found) == organization.name:
        if found.spec.proof == "administrator":
            return True
        await store.update(replace(found, spec=spec), log=log)
        return True
    if found is not None:
        if found.is_proven:
            return False
        await release(store, found)  # a claim that an earlier release stored
    metadata = Metadata(
        name=domain_id(domain),
        labels={ORGANIZATION_LABEL: organization.name},
        owner_references=(ORGANIZATION.owner(organization),),
    )
    try:
        await store.create(Domain(metadata=metadata, spec=spec), log=log)
    except AlreadyExists:
        # If it is released just now, the event of that enqueues the waiting organizations.
        return await find_in(store, Domain, domain_id(domain), organization.name) is not None
    except OwnerRejected:
        raise Conflict(ORGANIZATION.name, organization.name) from None  # its deletion was requested meanwhile
    return True


async def release(store: Store, domain: Domain, log: Sequence[Record] = ()) -> None:
    with suppress(NotFound):  # another process, whose leadership has ended, has done it
        await store.delete(Domain, domain.name, uid=domain.uid, log=log)


_NOT_CHECKED = "the record has not been looked for yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Domains:
    """Service of the domains that organizations claim."""

    store: Store
    clock: Clock
    issuer: str

    async def get(self, context: Context, organization: str) -> DomainRead:
        """Return the domain that an organization claims, and the record that proves the claim."""
        require_in_organization(context.principal, permission("organizations", "read"), organization)
        return await self._read(await self._claiming(organization))

    async def approve(self, context: Context, organization: str, body: DomainApproval) -> DomainRead:
        """Prove the domain that an organization claims, by the word of a platform administrator."""
        require_everywhere(context.principal, permission("organizations", "update"))
        claiming = await self._claiming(organization)
        if folded(body.domain) != folded(claiming.spec.domain):
            remedy = f"name {claiming.spec.domain}, or change the organization first"
            raise Invalid("domain", "is not the domain that the organization claims", remedy=remedy)
        log = context.audit(DOMAIN.plural, domain_id(body.domain), organization=organization)

        async def write() -> bool:
            return await prove(
                self.store, claiming, claiming.spec.domain, "administrator", now=self.clock.now(), log=log
            )

        if not await retry_on_conflict(write):
            remedy = "release it there first"
            raise Invalid("domain", "belongs to another organization, which has proven it", remedy=remedy)
        return await self._read(claiming)

    async def withdraw(self, context: Context, organization: str) -> None:
        """Withdraw the approval of a domain. It counts again when the record is found."""
        require_everywhere(context.principal, permission("organizations", "update"))
        claiming = await self._claiming(organization)
        found = await find_in(self.store, Domain, domain_id(claiming.spec.domain), organization)
        if found is None or found.spec.proof != "administrator":
            raise NotFound(Domain.__name__, claiming.spec.domain)
        log = context.audit(DOMAIN.plural, found.name, organization=organization)
        await release(self.store, found, log)

    async def _claiming(self, organization: str) -> Organization:
        found = await self.store.get(Organization, organization)
        if not found.spec.domain:
            raise NotFound(Domain.__name__, organization)
        return found

    async def _read(self, organization: Organization) -> DomainRead:
        domain = organization.spec.domain
        found = await find_in(self.store, Domain, domain_id(domain), organization.name)
        proof = found.spec.proof if found is not None else ""
        condition = find_condition(organization.status.conditions, PROVEN)
        return DomainRead(
            domain=domain,
            is_proven=bool(proof),
            proof=proof or None,
            proven_time=found.spec.proven if found is not None else None,
            record=txt_record(self.issuer, organization),
            message=condition.message if condition is not None else _NOT_CHECKED,
        )
