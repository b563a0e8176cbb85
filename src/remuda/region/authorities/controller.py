"""What is left to do about authorities: to take back what an undone operation left, and to let go of the project."""

from dataclasses import dataclass

from remuda.operations.kinds import Operation
from remuda.quota.ports import ProjectRef
from remuda.quota.reservation import OPERATION_OPEN, is_operation_open, wait_for_create
from remuda.quota.sagas import created_by
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Lifecycle, Outcome
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.reconcile.sources import Source
from remuda.region.authorities.sagas import reference_of
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import CONTROLLER_FINALIZER, organization_of, project_of
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityController:
    """Looks after authorities, which no provider knows of."""

    store: Store
    identity: IdentityPort

    async def provision(
        self, authority: SSHCertificateAuthority, run: ReconcileContext
    ) -> Result | Outcome[SSHCertificateAuthority]:
        """Wait for the operation that makes it."""
        return await wait_for_create(self.store, authority, authority.spec.operation, run) or Done()

    async def deprovision(self, authority: SSHCertificateAuthority, _: ReconcileContext) -> Result:
        """Let go of the project."""
        operation = authority.spec.operation
        if await is_operation_open(self.store, operation):
            return OPERATION_OPEN
        place = ProjectRef(organization_of(authority), project_of(authority))
        await self.identity.unrefer(place, reference_of(operation or authority.name))
        return Done()


def driver(ports: ReconcilePorts, identity: IdentityPort, *, settings: ControllerSettings | None = None) -> Controller:
    """Return the controller of authorities."""
    store = ports.store
    authorities = AuthorityController(store=store, identity=identity)
    lifecycle = Lifecycle(
        SSHCertificateAuthority,
        provision=authorities.provision,
        deprovision=authorities.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
    )
    return Controller(
        "sshcertificateauthorities",
        lifecycle,
        kind=SSHCertificateAuthority,
        ports=ports,
        sources=(
            Source(SSHCertificateAuthority),
            Source(
                Operation,
                when=lambda operation: operation.phase,
                keys=created_by(store, SSHCertificateAuthority, AUTHORITY),
            ),
        ),
        settings=settings,
    )
