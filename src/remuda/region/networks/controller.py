"""Controllers of networks and of their hidden identities.

An identity is a tenancy at the provider, with an SSH key pair. Its network is created in it, as an allocated VLAN if
the region has a physical network. Deletion is in the reverse order: the objects on the network, the network, its VLAN,
its quota, the tenancy, and the reference to the project.

The private key file is encoded here, because the cryptography library puts random bytes of its own into it: with ours,
a simulation is deterministic, and encoding a key twice gives the same text.
"""

import base64
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.providers.contract.common import InUse
from remuda.providers.contract.networks import CloudAddressRange, CloudNetwork, CloudNetworkSpec, CloudRoute, Tenancy
from remuda.quota.lifecycle import QuotaHooks
from remuda.quota.ports import QuotaLedger
from remuda.quota.sagas import created_by, operation_source
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import RECHECK_S, Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, indexed, labelled
from remuda.reconcile.status import is_provisioned
from remuda.region.catalogue.provider_registry import ProviderRegistry, require
from remuda.region.kinds.common import IpRange, is_abandoned
from remuda.region.kinds.networks import (
    NETWORK,
    VLANS_EXHAUSTED,
    Identity,
    Network,
    NetworkOpenstack,
    OpenstackIdentity,
    OpenstackIdentitySpec,
    VLANAllocation,
    region_of_vlans,
)
from remuda.region.networks import rules
from remuda.region.networks.ipam import allocate_vlan, release_vlan, vlan_segments
from remuda.resources.conventions import CONTROLLER_FINALIZER, identity_of, organization_of, project_of, region_of
from remuda.resources.conventions import IDENTITY as IDENTITY_LABEL
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Metadata

_TYPE = b"ssh-ed25519"
_SEED_BYTES = 32
_CHECK_BYTES = 4
_BLOCK = 8
_WIDTH = 70


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key pair in the formats of OpenSSH: the private key file, and the public key line."""

    private: Secret
    public: str


def new_key_pair(randomness: Randomness) -> KeyPair:
    seed, check = randomness.token_bytes(_SEED_BYTES), randomness.token_bytes(_CHECK_BYTES)
    point = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    public = _text(_TYPE) + _text(point)
    return KeyPair(
        private=Secret(_file(public, check + check + public + _text(seed + point) + _text(b""))),
        public=f"{_TYPE.decode()} {base64.b64encode(public).decode()}",
    )


def _file(public: bytes, private: bytes) -> str:
    """Return an unencrypted private key file (OpenSSH's PROTOCOL.key)."""
    padding = bytes(range(1, 1 + -len(private) % _BLOCK))
    no_cipher = _text(b"none") + _text(b"none") + _text(b"")
    content = b"openssh-key-v1\0" + no_cipher + _number(1) + _text(public) + _text(private + padding)
    lines = textwrap.wrap(base64.b64encode(content).decode(), _WIDTH)
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""])


def _text(content: bytes) -> bytes:
    return _number(len(content)) + content


def _number(value: int) -> bytes:
    return value.to_bytes(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityController:
    """Provisions and deprovisions the tenancy of an identity."""

    store: Store
    randomness: Randomness
    providers: ProviderRegistry

    async def provision(self, identity: Identity, context: ReconcileContext) -> Result:
        """Create the tenancy, with a key pair that was stored before."""
        cloud = await self.providers.get(region_of(identity))
        record = await find(self.store, OpenstackIdentity, identity.name)
        if record is None:
            return await self._write_record(identity, context)
        desired = _tenancy(identity, record)
        tenancies = require(cloud.provider.tenancies)
        if await tenancies.find_tenancy(desired.name) != desired:
            context.acted = True
            await tenancies.converge_tenancy(desired)
        return Done()

    async def deprovision(self, identity: Identity, context: ReconcileContext) -> Result:
        """Remove the tenancy, then the key pair."""
        waiting = None if is_abandoned(identity) else await self._remove_tenancy(identity)
        if waiting is not None:
            context.acted = True
            return waiting
        record = await find(self.store, OpenstackIdentity, identity.name)
        if record is not None:
            with suppress(NotFound):  # another process was first
                await self.store.delete(OpenstackIdentity, record.name, uid=record.uid)
        return Done()

    async def _remove_tenancy(self, identity: Identity) -> Result | None:
        """Remove the tenancy; return the result to report, or None when it was removed."""
        cloud = await self.providers.get(region_of(identity))
        tenancies, name = require(cloud.provider.tenancies), rules.tenancy_of(identity.metadata)
        try:
            return await cloud.delete(name, tenancies.find_tenancy, tenancies.remove_tenancy)
        except InUse:
            return Requeue(RECHECK_S, "Deprovisioning", "the provider still has objects in its tenancy")

    async def _write_record(self, identity: Identity, context: ReconcileContext) -> Result:
        context.acted = True
        pair = new_key_pair(self.randomness)
        metadata = Metadata(name=identity.name, labels=dict(identity.metadata.labels))
        spec = OpenstackIdentitySpec(ssh_private_key=pair.private, ssh_public_key=pair.public)
        with suppress(AlreadyExists):  # another process was first
            await self.store.create(OpenstackIdentity(metadata=metadata, spec=spec))
        return Requeue(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkController:
    """Provisions and deprovisions a network."""

    store: Store
    providers: ProviderRegistry

    async def provision(self, network: Network, context: ReconcileContext) -> Result | Outcome[Network]:
        identity = await self.store.get(Identity, identity_of(network))
        if not is_provisioned(identity):
            return Blocked("DependencyNotReady", "its tenancy at the provider is being created")
        cloud = await self.providers.get(region_of(network))
        networks = require(cloud.provider.networks)
        found = await networks.find_network(rules.network_handle(network, identity))
        vlan = None if found is None else found.spec.vlan  # it never changes
        if found is None and vlan_segments(cloud.region):
            vlan = await allocate_vlan(self.store, cloud, network.name)
            if vlan is None:
                return Blocked(VLANS_EXHAUSTED, "its region has no free VLAN: delete a network")
        desired = _desired(network, identity, vlan)
        if found is None or found.spec != desired:
            context.acted = True
            try:
                found = await networks.converge_network(desired)
            except InUse:
                return Failed("VLANTaken", f"another network at the provider has its VLAN {vlan}")
        return Outcome(Done(), _observed(network, found))

    async def deprovision(self, network: Network, context: ReconcileContext) -> Result:
        """Remove the network at the provider, then release its VLAN."""
        identity = await find(self.store, Identity, identity_of(network))
        if identity is not None and not identity.is_deleting:  # the API process stopped before it deleted the identity
            context.acted = True
            with suppress(NotFound):
                await self.store.delete(Identity, identity.name, uid=identity.uid)
        if identity is not None and not is_abandoned(network):
            cloud = await self.providers.get(region_of(network))
            networks = require(cloud.provider.networks)
            handle = rules.network_handle(network, identity)
            try:
                waiting = await cloud.delete(handle, networks.find_network, networks.remove_network)
            except InUse:
                return Requeue(RECHECK_S, "Deprovisioning", "the provider still has objects on it")
            if waiting is not None:
                context.acted = True
                return waiting
            await release_vlan(self.store, cloud.region, network.name)
        return Done()


def _tenancy(identity: Identity, record: OpenstackIdentity) -> Tenancy:
    return Tenancy(
        name=rules.tenancy_of(identity.metadata),
        organization=organization_of(identity),
        project=project_of(identity),
        public_key=record.spec.ssh_public_key,
    )


def _desired(network: Network, identity: Identity, vlan: int | None) -> CloudNetworkSpec:
    plan, spec = rules.plan_of(network), network.spec
    pool = plan.dhcp_pool
    return CloudNetworkSpec(
        handle=rules.network_handle(network, identity),
        prefix=spec.prefix,
        gateway=str(plan.gateway),
        pool=CloudAddressRange(str(pool.first), str(pool.last)),
        nameservers=spec.dns_nameservers,
        routes=tuple(CloudRoute(route.prefix, route.next_hop) for route in spec.routes),
        vlan=vlan,
    )


def _observed(network: Network, found: CloudNetwork) -> Network:
    storage = rules.plan_of(network).storage_range
    at_cloud = NetworkOpenstack(
        network_id=found.id,
        subnet_id=found.subnet_id,
        vlan_id=found.spec.vlan,
        storage_range=None if storage is None else IpRange(start_ip=str(storage.first), end_ip=str(storage.last)),
    )
    return replace(network, status=replace(network.status, openstack=at_cloud))


def controllers(
    ports: ReconcilePorts,
    ledger: QuotaLedger,
    providers: ProviderRegistry,
    *,
    settings: ControllerSettings | None = None,
) -> Sequence[Controller]:
    store = ports.store
    identities = IdentityController(store=store, randomness=ports.randomness, providers=providers)
    networks = NetworkController(store=store, providers=providers)
    return (
        lifecycle_controller(
            "identities",
            Identity,
            provision=identities.provision,
            deprovision=identities.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            hooks=QuotaHooks(
                store=store, clock=ports.clock, ledger=ledger, reference=lambda found: rules.reference_of(found.name)
            ),
            sources=(operation_source(NETWORK, created_by(store, Identity)),),
            settings=settings,
        ),
        lifecycle_controller(
            "networks",
            Network,
            provision=networks.provision,
            deprovision=networks.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            hooks=QuotaHooks(store=store, clock=ports.clock, ledger=ledger, charge=rules.charge_of),
            sources=(
                Source(Identity, when=is_provisioned, keys=labelled(store, Network, IDENTITY_LABEL)),
                Source(VLANAllocation, keys=indexed(store, Network, "without VLAN", region_of_vlans)),
                operation_source(NETWORK, created_by(store, Network)),
            ),
            settings=settings,
        ),
    )
