"""Controller that looks for the records by which organizations prove their domains.

A claim is checked when it is made and every five minutes, a proof every hour. A proof ends when its record has been
missing for three days: an owner who gives a domain up removes the record, and a mistake can be corrected. If the name
servers do not respond, nothing is known and nothing changes. The word of a platform administrator is not checked.

Events and resyncs cause no further lookups: the last result is kept in memory until its time is over.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from msgspec.structs import replace

from remuda.identity.kinds.tenancy import Domain, Organization
from remuda.identity.ports import FindTxt
from remuda.identity.tenancy.domains import PROVEN, find_proven, prove, release, txt_record
from remuda.identity.tenancy.schema import TxtRecord
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, set_condition
from remuda.kernel.errors import Unavailable
from remuda.kernel.text import folded
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import is_paused
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.reconcile.sources import Source, indexed
from remuda.resources.conventions import organization_of
from remuda.resources.crud import find
from remuda.store.contract import Store

_SHORTEST_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofTimes:
    """Times of the checks."""

    claim: timedelta = timedelta(minutes=5)
    """Time after which a claim is checked again."""
    proof: timedelta = timedelta(hours=1)
    """Time after which a proof is checked again."""
    grace: timedelta = timedelta(days=3)
    """Time for which a record may be missing before the proof ends."""


PROOF_TIMES = ProofTimes()

_Presence = Literal["present", "missing", "unknown"]


@dataclass(frozen=True, slots=True)
class _Check:
    """Last lookup for an organization."""

    value: str
    """Expected value: another domain has another."""
    at: float
    record: _Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainProofController:
    """Proves the claims of organizations, and ends proofs whose record is missing."""

    store: Store
    clock: Clock
    find_txt: FindTxt
    issuer: str
    times: ProofTimes
    _checks: dict[str, _Check] = field(default_factory=dict)

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        organization = await find(self.store, Organization, key, include_deleting=False)
        if organization is None or not organization.spec.domain or is_paused(organization):
            self._checks.pop(key, None)
            return Done()
        found = await find_proven(self.store, organization.spec.domain)
        if found is not None and organization_of(found) != organization.name:
            await self._report(organization, "False", "DomainTaken", "another organization has proven this domain")
        elif found is not None and found.spec.proof == "administrator":
            await self._report(organization, "True", "Approved", "a platform administrator has approved this domain")
        else:
            await self._check(organization, found, context)
        return Done()

    async def _check(self, organization: Organization, proven: Domain | None, context: ReconcileContext) -> None:
        found = await self._presence(organization, self.times.claim if proven is None else self.times.proof, context)
        if found == "present":
            await self._found(organization, proven, context)
        elif found == "missing":
            await self._missing(organization, proven, context)
        elif proven is None:
            message = "the name servers do not respond, so the domain has no effect yet"
            await self._report(organization, "False", "ResolverUnavailable", message)

    async def _presence(self, organization: Organization, period: timedelta, context: ReconcileContext) -> _Presence:
        record, now = txt_record(self.issuer, organization), self.clock.monotonic()
        last = self._checks.get(organization.name)
        if last is None or last.value != record.value or now - last.at >= period.total_seconds():
            last = _Check(record.value, now, await self._find_record(record, organization.name))
            self._checks[organization.name] = last
        context.requeue_after(max(_SHORTEST_S, last.at + period.total_seconds() - now))
        return last.record

    async def _find_record(self, record: TxtRecord, organization: str) -> _Presence:
        try:
            found = await self.find_txt(record.name, organization=organization)
        except Unavailable:
            return "unknown"
        return "present" if record.value in found else "missing"

    async def _found(self, organization: Organization, proven: Domain | None, context: ReconcileContext) -> None:
        if proven is None and not await self._prove(organization, context):
            return  # another organization was faster, and its event follows
        if proven is not None and proven.spec.missing_since is not None:
            context.acted = True
            await self.store.update(replace(proven, spec=replace(proven.spec, missing_since=None)))
        await self._report(organization, "True", "RecordFound", "the TXT record is published")

    async def _prove(self, organization: Organization, context: ReconcileContext) -> bool:
        domain, now = organization.spec.domain, self.clock.now()
        log = [context.event(organization, "DomainProven", domain=domain)]
        return await prove(self.store, organization, domain, "dns", now=now, log=log)

    async def _missing(self, organization: Organization, proven: Domain | None, context: ReconcileContext) -> None:
        now = self.clock.now()
        since = None if proven is None else proven.spec.missing_since
        is_over = since is not None and now - since >= self.times.grace
        if proven is not None and is_over:
            log = [context.event(organization, "DomainLost", domain=proven.spec.domain)]
            await release(self.store, proven, log)
        if proven is None or is_over:
            message = "the TXT record is not published, so the domain has no effect"
            await self._report(organization, "False", "RecordMissing", message)
            return
        if since is None:
            context.acted = True
            await self.store.update(replace(proven, spec=replace(proven.spec, missing_since=now)))
        message = "the TXT record is missing: publish it again, or the proof ends after three days"
        await self._report(organization, "True", "RecordMissing", message)

    async def _report(
        self, organization: Organization, status: Literal["True", "False"], reason: str, message: str
    ) -> None:
        """Write the condition, if it has changed."""
        condition = Condition(
            type=PROVEN,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=self.clock.now().replace(microsecond=0),
        )
        current = await find(self.store, Organization, organization.name)
        if current is None:
            return
        conditions = set_condition(current.status.conditions, condition)
        if conditions is not current.status.conditions:
            await self.store.update_status(replace(current, status=replace(current.status, conditions=conditions)))


def domain_proofs(
    ports: ReconcilePorts,
    find_txt: FindTxt,
    *,
    issuer: str,
    times: ProofTimes = PROOF_TIMES,
    settings: ControllerSettings | None = None,
) -> Controller:
    """Return the controller of domain proofs; `issuer` is our own."""
    store = ports.store
    return Controller(
        "domain-proofs",
        DomainProofController(store=store, clock=ports.clock, find_txt=find_txt, issuer=issuer, times=times),
        kind=Organization,
        ports=ports,
        sources=(
            Source(Organization),
            Source(Domain, keys=indexed(store, Organization, "domain", lambda domain: folded(domain.spec.domain))),
        ),
        settings=settings,
    )
