"""How the services of one process reach each other: as services with the rights that their accounts have."""

from remuda.access.principal import Principal
from remuda.clients.identity import IdentityLink
from remuda.clients.projects import watch_projects
from remuda.clients.region import RegionLink
from remuda.clients.transport import Here, ServiceNow
from remuda.clients.watch import WatchHere
from remuda.identity.app import TABLE as IDENTITY
from remuda.identity.app import IdentityApp
from remuda.region.app import TABLE as REGION
from remuda.region.app import RegionApp


def identity_link(identity: IdentityApp, name: str) -> IdentityLink:
    """Return a service's way to identity."""
    service, ports = _service(identity, name), identity.ports
    clock, randomness = ports.clock, ports.randomness
    watch = WatchHere(
        IDENTITY, identity.service, reader=service, clock=clock, randomness=randomness, watched=ports.watched
    )
    return IdentityLink(
        send=Here(IDENTITY, identity.service),
        service=service,
        randomness=randomness,
        watch=lambda: watch_projects(watch),
    )


def region_link(identity: IdentityApp, region: RegionApp, name: str) -> RegionLink:
    """Return a service's way to region."""
    service, ports = _service(identity, name), region.ports
    clock, randomness = ports.clock, ports.randomness
    return RegionLink(
        asking=Here(REGION, region.service, impersonating=service),
        acting=Here(REGION, region.service),
        service=service,
        watch=WatchHere(
            REGION, region.service, reader=service, clock=clock, randomness=randomness, watched=ports.watched
        ),
        randomness=randomness,
    )


def _service(identity: IdentityApp, name: str) -> ServiceNow:
    """Return what tells a service's rights as they are now."""
    known: Principal | None = None

    async def service() -> Principal:
        nonlocal known
        access = (await identity.service.rights.of_system(name)).access
        if known is None or known.access is not access:
            known = Principal(subject=name, type="system", access=access)
        return known

    return service
