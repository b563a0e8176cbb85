"""What takes more than one effect: to make a network.

Its project is told first, so that it cannot go unnoticed; then what it costs is held; then its hidden identity is made,
which is named after the operation, and at last the network itself, which remembers it.
"""

from dataclasses import dataclass

import msgspec

from remuda.access.principal import Requester
from remuda.kernel.errors import AlreadyExists, Unavailable
from remuda.operations.saga import AnyBound, Bound, Saga, Step, Work
from remuda.quota.ports import Amount, Charge, ProjectRef
from remuda.quota.reservation import reserve
from remuda.quota.sagas import roll_back_create
from remuda.region.kinds.common import ProviderType
from remuda.region.kinds.networks import IDENTITY, NETWORK, Identity, Network
from remuda.region.networks import rules
from remuda.region.networks.schema import NetworkCreate
from remuda.region.ports import IdentityPort
from remuda.resources.crud import find
from remuda.store.contract import Store


class NewNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make a network."""

    network: str
    """Its id."""
    wanted: NetworkCreate
    provider: ProviderType
    by: Requester
    """Who pays is told in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPorts:
    """What the steps reach the world through."""

    store: Store
    identity: IdentityPort


def reference_of(identity: str) -> str:
    """Return by what an identity keeps its project."""
    return f"{IDENTITY.qualified}/{identity}"


def charge_of(network: str, operation: str, payer: ProjectRef) -> Charge:
    """Return what a network costs, which the operation that made it holds."""
    return Charge(
        payer=payer, operation=operation, kind=NETWORK.qualified, id=network, amounts=(Amount("networks", 1),)
    )


def _place(work: Work[NewNetwork]) -> ProjectRef:
    spec = work.input.wanted.spec
    return ProjectRef(spec.organization_id, spec.project_id)


def _payer(work: Work[NewNetwork]) -> ProjectRef:
    by = work.input.by
    assert by.organization is not None, "it is completed when it is asked for"
    assert by.project is not None, "it is completed when it is asked for"
    return ProjectRef(by.organization, by.project)


def _charge(work: Work[NewNetwork]) -> Charge:
    return charge_of(work.input.network, work.id, _payer(work))


async def _refer(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    await ports.identity.refer(_place(work), reference_of(rules.identity_id(work.id)))


async def _unrefer(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    await ports.identity.unrefer(_place(work), reference_of(rules.identity_id(work.id)))


async def _leave(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    """Do nothing: what a step before this one did is taken back by its own undo."""


async def _allocate(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    await reserve(ports.identity, _charge(work), work.input.by.principal)


async def _release(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    await ports.identity.release(_charge(work))


async def _make_identity(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    wanted = work.input
    made = rules.new_identity(work.id, wanted.wanted.spec, wanted.provider, wanted.by.principal)
    try:
        await ports.store.create(made)
    except AlreadyExists:
        return  # its name is this operation's: we made it


async def _unmake_identity(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    await roll_back_create(ports.store, Identity, rules.identity_id(work.id))


async def _make_network(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    identity = await find(ports.store, Identity, rules.identity_id(work.id))
    if identity is None:
        raise Unavailable("The network took too long to be made, and was taken back: try again.")
    new = work.input
    made = rules.new_network(new.network, new.wanted, identity, new.by.principal, operation=work.id)
    try:
        await ports.store.create(made)
    except AlreadyExists:
        if (await ports.store.get(Network, made.name)).spec.operation != work.id:
            raise


async def _unmake_network(ports: NetworkPorts, work: Work[NewNetwork]) -> None:
    await roll_back_create(ports.store, Network, work.input.network, lambda network: network.spec.operation == work.id)


CREATE_NETWORK: Saga[NetworkPorts, NewNetwork] = Saga(
    name="network.create",
    input_type=NewNetwork,
    subject=lambda new: (NETWORK.qualified, new.network),
    steps=(
        Step(name="keep-project", do=_refer, undo=_unrefer),
        Step(name="hold-quota", do=_allocate, undo=_release),
        Step(name="make-identity", do=_make_identity, undo=_unmake_identity),
        Step(name="make-network", do=_make_network, undo=_unmake_network),
        # Whoever deletes the project marks it, then looks for what is in it. What was made before the mark is found by
        # that look; what was made after it is refused here.
        Step(name="look-at-project", do=_refer, undo=_leave),
    ),
)
"""Makes a network with its hidden identity."""


def bound(ports: NetworkPorts) -> list[AnyBound]:
    """Return the sagas of this room with what they reach the world through."""
    return [Bound(CREATE_NETWORK, ports)]
