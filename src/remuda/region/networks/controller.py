"""What makes networks and their hidden identities true at a provider.

An identity is a tenancy there, with a key pair of ours; its network is made in it, as a VLAN that was given to it
before where the region has a physical network. Both go in the other order: what is on the network, the network, its
VLAN, what it cost, the tenancy, and last the identity's hold on its project.

Key pairs by which a server's first user logs in: Ed25519, as OpenSSH writes them.

The private key is written here rather than by the cryptography library, which puts random bytes of its own into it:
drawn from our randomness alone, a simulation's keys are the same each time, and a key written twice is the same text.
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
from remuda.providers.contract.networks import AddressRange, CloudNetwork, CloudNetworkSpec, CloudRoute, Tenancy
from remuda.quota.ports import Charge
from remuda.quota.reservation import RECHECK_S, QuotaAdmission, is_provisioned, payer_of
from remuda.quota.sagas import created_by, operation_source
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, labelled, through
from remuda.region.catalogue.provider_registry import Clouds, need
from remuda.region.deletion import until_gone
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
from remuda.region.networks.ipam import give_vlan_back, segments_of, take_vlan
from remuda.region.networks.sagas import charge_of, reference_of
from remuda.region.ports import IdentityPort
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
    """Both halves as OpenSSH writes them: the private one as a file's text, the public one as a line."""

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
    """Return the text of an unencrypted private key file (OpenSSH's PROTOCOL.key)."""
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
    """Keeps a tenancy at the provider for each identity."""

    store: Store
    randomness: Randomness
    clouds: Clouds

    async def provision(self, identity: Identity, run: ReconcileContext) -> Result:
        """Make the tenancy, with a key pair that is written down before."""
        cloud = await self.clouds.get(region_of(identity))
        record = await find(self.store, OpenstackIdentity, identity.name)
        if record is None:
            return await self._write_record(identity, run)
        wanted = _tenancy(identity, record)
        tenancies = need(cloud.provider.tenancies)
        if await tenancies.find_tenancy(wanted.name) != wanted:
            run.acted = True
            await tenancies.converge_tenancy(wanted)
        return Done()

    async def deprovision(self, identity: Identity, run: ReconcileContext) -> Result:
        """Remove the tenancy, then what is known of it, then let go of the project."""
        left = None if is_abandoned(identity) else await self._remove_tenancy(identity)
        if left is not None:
            run.acted = True
            return left
        record = await find(self.store, OpenstackIdentity, identity.name)
        if record is not None:
            with suppress(NotFound):  # another process that believes to lead was faster
                await self.store.delete(OpenstackIdentity, record.name, uid=record.uid)
        return Done()

    async def _remove_tenancy(self, identity: Identity) -> Result | None:
        """Remove the tenancy; return what to wait for, or None when it is gone."""
        cloud = await self.clouds.get(region_of(identity))
        tenancies, name = need(cloud.provider.tenancies), rules.tenancy_of(identity.metadata)
        try:
            return await until_gone(name, tenancies.find_tenancy, tenancies.remove_tenancy, cloud)
        except InUse:
            return Requeue(RECHECK_S, "Deprovisioning", "the provider still has something in its tenancy")

    async def _write_record(self, identity: Identity, run: ReconcileContext) -> Result:
        run.acted = True
        pair = new_key_pair(self.randomness)
        metadata = Metadata(name=identity.name, labels=dict(identity.metadata.labels))
        spec = OpenstackIdentitySpec(ssh_private_key=pair.private, ssh_public_key=pair.public)
        with suppress(AlreadyExists):  # another process that believes to lead was faster
            await self.store.create(OpenstackIdentity(metadata=metadata, spec=spec))
        return Requeue(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkController:
    """Keeps a network at the provider for each network."""

    store: Store
    clouds: Clouds

    async def provision(self, network: Network, run: ReconcileContext) -> Result | Outcome[Network]:
        """Bring a network one step nearer to being there."""
        home = await self.store.get(Identity, identity_of(network))
        if not is_provisioned(home):
            return Blocked("DependencyNotReady", "its place at the provider is being made")
        cloud = await self.clouds.get(region_of(network))
        networks = need(cloud.provider.networks)
        found = await networks.find_network(rules.to_cloud(network, home))
        vlan = None if found is None else found.spec.vlan  # it stays what it was made
        if found is None and segments_of(cloud.region):
            vlan = await take_vlan(self.store, cloud, network.name)
            if vlan is None:
                return Blocked(VLANS_EXHAUSTED, "its region has no free VLAN: remove a network")
        wanted = _wanted(network, home, vlan)
        if found is None or found.spec != wanted:
            run.acted = True
            try:
                found = await networks.converge_network(wanted)
            except InUse:
                return Failed("VLANTaken", f"something else at the provider has its VLAN {vlan}")
        return Outcome(Done(), _seen(network, found))

    async def deprovision(self, network: Network, run: ReconcileContext) -> Result:
        """Bring a network one step nearer to being gone: the provider first, then what it cost."""
        home = await find(self.store, Identity, identity_of(network))
        if home is not None and not home.is_deleting:  # whoever deleted the network did not come to that
            run.acted = True
            with suppress(NotFound):
                await self.store.delete(Identity, home.name, uid=home.uid)
        if home is not None and not is_abandoned(network):
            cloud = await self.clouds.get(region_of(network))
            networks = need(cloud.provider.networks)
            handle = rules.to_cloud(network, home)
            try:
                left = await until_gone(handle, networks.find_network, networks.remove_network, cloud)
            except InUse:
                return Requeue(RECHECK_S, "Deprovisioning", "the provider still has something on it")
            if left is not None:
                run.acted = True
                return left
            await give_vlan_back(self.store, cloud.region, network.name)
        return Done()


def _charge(network: Network) -> Charge:
    return charge_of(network.name, network.spec.operation, payer_of(network))


def _tenancy(identity: Identity, record: OpenstackIdentity) -> Tenancy:
    return Tenancy(
        name=rules.tenancy_of(identity.metadata),
        organization=organization_of(identity),
        project=project_of(identity),
        public_key=record.spec.ssh_public_key,
    )


def _wanted(network: Network, home: Identity, vlan: int | None) -> CloudNetworkSpec:
    plan, spec = rules.plan_of(network), network.spec
    pool = plan.dhcp_pool
    return CloudNetworkSpec(
        handle=rules.to_cloud(network, home),
        prefix=spec.prefix,
        gateway=str(plan.gateway),
        pool=AddressRange(str(pool.first), str(pool.last)),
        nameservers=spec.dns_nameservers,
        routes=tuple(CloudRoute(route.prefix, route.next_hop) for route in spec.routes),
        vlan=vlan,
    )


def _seen(network: Network, found: CloudNetwork) -> Network:
    storage = rules.plan_of(network).storage_range
    at_cloud = NetworkOpenstack(
        network_id=found.id,
        subnet_id=found.subnet_id,
        vlan_id=found.spec.vlan,
        storage_range=None if storage is None else IpRange(start_ip=str(storage.first), end_ip=str(storage.last)),
    )
    return replace(network, status=replace(network.status, openstack=at_cloud))


def drivers(
    ports: ReconcilePorts, identity: IdentityPort, clouds: Clouds, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    """Return the controllers of identities and networks."""
    store = ports.store
    identities = IdentityController(store=store, randomness=ports.randomness, clouds=clouds)
    networks = NetworkController(store=store, clouds=clouds)
    return (
        lifecycle_controller(
            "identities",
            Identity,
            provision=identities.provision,
            deprovision=identities.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            admission=QuotaAdmission(
                store=store,
                clock=ports.clock,
                identity=identity,
                reference=lambda found: reference_of(found.name),
            ),
            sources=(operation_source(created_by(store, Identity, NETWORK)),),
            settings=settings,
        ),
        lifecycle_controller(
            "networks",
            Network,
            provision=networks.provision,
            deprovision=networks.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            admission=QuotaAdmission(store=store, clock=ports.clock, identity=identity, charge=_charge),
            sources=(
                Source(Identity, when=is_provisioned, keys=labelled(store, Network, IDENTITY_LABEL)),
                Source(VLANAllocation, keys=through(store, Network, "without VLAN", region_of_vlans)),
                operation_source(created_by(store, Network, NETWORK)),
            ),
            settings=settings,
        ),
    )
