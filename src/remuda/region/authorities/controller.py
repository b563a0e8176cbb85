"""Controller of SSH certificate authorities. Providers do not have them, so that only their hooks matter."""

from collections.abc import Sequence

from remuda.quota.lifecycle import QuotaHooks
from remuda.quota.ports import QuotaLedger
from remuda.quota.sagas import created_by, operation_source
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.region.authorities.rules import reference_of
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority
from remuda.resources.conventions import CONTROLLER_FINALIZER


async def _do_nothing(_resource: SSHCertificateAuthority, _context: ReconcileContext) -> Result:
    return Done()


def controllers(
    ports: ReconcilePorts, ledger: QuotaLedger, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    return (
        lifecycle_controller(
            "sshcertificateauthorities",
            SSHCertificateAuthority,
            provision=_do_nothing,
            deprovision=_do_nothing,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            hooks=QuotaHooks(
                store=ports.store,
                clock=ports.clock,
                ledger=ledger,
                reference=lambda authority: reference_of(authority.spec.operation or authority.name),
            ),
            sources=(operation_source(AUTHORITY, created_by(ports.store, SSHCertificateAuthority)),),
            settings=settings,
        ),
    )
