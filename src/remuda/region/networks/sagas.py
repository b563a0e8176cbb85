"""Saga that creates a network.

It refers to the project first, so that the project cannot be deleted meanwhile, and reserves the quota. Then it creates
the hidden identity, which is named after the operation, and the network, which stores the operation.
"""

from contextlib import suppress

import msgspec

from remuda.access.principal import Requester
from remuda.kernel.errors import AlreadyExists, Unavailable
from remuda.operations.saga import Step, Work
from remuda.providers.contract.common import ProviderType
from remuda.quota.ports import Charge, ProjectRef
from remuda.quota.sagas import QuotaPorts, create_saga, roll_back_create
from remuda.region.kinds.networks import NETWORK, Identity, Network
from remuda.region.networks import rules
from remuda.region.networks.schema import NetworkCreate
from remuda.resources.crud import find


class NewNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The input: a network to create."""

    network: str
    requested: NetworkCreate
    provider: ProviderType
    requester: Requester
    """The requester, with the payer."""


def _charge(work: Work[NewNetwork], payer: ProjectRef) -> Charge:
    return rules.build_charge(work.input.network, work.id, payer)


async def _create_identity(ports: QuotaPorts, work: Work[NewNetwork]) -> None:
    new = work.input
    with suppress(AlreadyExists):  # this operation, after which it is named, created it before
        await ports.store.create(
            rules.new_identity(work.id, new.requested.spec, new.provider, new.requester.named(work.actor_name))
        )


async def _roll_back_identity(ports: QuotaPorts, work: Work[NewNetwork]) -> None:
    await roll_back_create(ports.store, Identity, rules.identity_id(work.id))


async def _build(ports: QuotaPorts, work: Work[NewNetwork]) -> Network:
    identity = await find(ports.store, Identity, rules.identity_id(work.id))
    if identity is None:
        raise Unavailable("Creating the network took too long and was rolled back: try again.")
    new = work.input
    return rules.new_network(
        new.network, new.requested, identity, new.requester.named(work.actor_name), operation=work.id
    )


CREATE_NETWORK = create_saga(
    "network.create",
    NETWORK,
    NewNetwork,
    id_of=lambda new: new.network,
    create_step="create-network",
    build=_build,
    charge=_charge,
    reference=lambda operation: rules.reference_of(rules.identity_id(operation)),
    extra_steps=(Step(name="create-identity", do=_create_identity, undo=_roll_back_identity),),
)

SAGAS = (CREATE_NETWORK,)
