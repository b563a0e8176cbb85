"""What is left to do about authorities: to take back what an undone operation left, and to let go of the project."""

from dataclasses import dataclass

from remuda.operations.kinds import Operation
from remuda.quota.ports import Place
from remuda.quota.reservation import OPERATION_OPEN, begins, is_being_made
from remuda.quota.sagas import made_by
from remuda.reconcile.controller import Driver
from remuda.reconcile.lifecycle import Lifecycle, Outcome
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.reconcile.results import Done, Result, Run
from remuda.reconcile.sources import Source
from remuda.region.authorities.sagas import reference_of
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import IN_CARE, organization_of, project_of
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityController:
    """Looks after authorities, which no provider knows of."""

    store: Store
    identity: IdentityPort

    async def provision(
        self, authority: SSHCertificateAuthority, run: Run
    ) -> Result | Outcome[SSHCertificateAuthority]:
        """Wait for the operation that makes it."""
        return await begins(self.store, authority, authority.spec.operation, run) or Done()

    async def deprovision(self, authority: SSHCertificateAuthority, _: Run) -> Result:
        """Let go of the project."""
        operation = authority.spec.operation
        if await is_being_made(self.store, operation):
            return OPERATION_OPEN
        place = Place(organization_of(authority), project_of(authority))
        await self.identity.unrefer(place, reference_of(operation or authority.name))
        return Done()


def driver(ports: ReconcilePorts, identity: IdentityPort, *, settings: DriverSettings | None = None) -> Driver:
    """Return the controller of authorities."""
    store = ports.store
    authorities = AuthorityController(store=store, identity=identity)
    lifecycle = Lifecycle(
        SSHCertificateAuthority,
        provision=authorities.provision,
        deprovision=authorities.deprovision,
        finalizer=IN_CARE,
        ports=ports,
    )
    return Driver(
        "sshcertificateauthorities",
        lifecycle,
        kind=SSHCertificateAuthority,
        ports=ports,
        sources=(
            Source(SSHCertificateAuthority),
            Source(
                Operation,
                when=lambda operation: operation.phase,
                keys=made_by(store, SSHCertificateAuthority, AUTHORITY),
            ),
        ),
        settings=settings,
    )
