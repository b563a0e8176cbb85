"""OpenStack clouds as providers of regions; imported only where a region has one, because its client is heavy."""

import asyncio
import base64
import binascii
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network

from msgspec.structs import replace

from remuda.app.region_providers import OpenProvider
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, Unavailable
from remuda.kernel.fields import with_common_fields
from remuda.kernel.randomness import Randomness
from remuda.outbound.addresses import AddressPolicy, Resolver, read_target
from remuda.outbound.client import new_tls
from remuda.providers.contract.catalogue import CloudGpu
from remuda.providers.openstack.catalogue import FlavorOverride, FlavorSelection
from remuda.providers.openstack.client import CloudAddress, OpenStackClient
from remuda.providers.openstack.logins import ApplicationCredential
from remuda.providers.openstack.probe import ManagerNames, ProbeFailed, find_manager
from remuda.providers.openstack.provider import OpenStackSettings, open_cloud
from remuda.providers.openstack.survey import own_project_kept, remove_own_project, survey
from remuda.providers.openstack.tenancies import Manager, TenancyAccess
from remuda.region.kinds.regions import FlavorMetadata, RegionOpenstack, RegionSpec, ServiceAccountConfig
from remuda.region.networks.credentials import TenancyCredentials
from remuda.region.ports import AccountNames, CheckedRegion, RegionFinding
from remuda.store.contract import Store

PRIVATE_NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
"""Networks in which clouds often are. Platform administrators may name addresses there, unlike other users."""
_DRAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class SealedCredentials:
    """Credentials of tenancies as the provider needs them; implements its `CredentialStore`."""

    stored: TenancyCredentials

    async def find(self, tenancy: str) -> ApplicationCredential | None:
        found = await self.stored.find(tenancy)
        return None if found is None else ApplicationCredential(*found)

    async def put(self, tenancy: str, credential: ApplicationCredential) -> None:
        await self.stored.put(tenancy, credential.id, credential.secret)

    async def remove(self, tenancy: str) -> None:
        await self.stored.remove(tenancy)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStackRegions:
    """Connections to the OpenStack clouds of regions."""

    store: Store
    clock: Clock
    randomness: Randomness
    resolve: Resolver
    targets: tuple[str, ...] = ()
    """Networks besides the public and the private ones in which a cloud may be."""

    async def open(self, spec: RegionSpec) -> OpenProvider:
        """Open a cloud, without waiting for it."""
        found = _section(spec)
        settings = await _settings(found, _manager(found))
        cloud = open_cloud(settings, self._credentials, clock=self.clock, randomness=self.randomness)
        return OpenProvider(provider=cloud.provider, close=cloud.close, drain_s=_DRAIN_S)

    async def check(self, spec: RegionSpec, names: AccountNames) -> CheckedRegion:
        """Return what a cloud offers and lacks, or raise Invalid; see `RegionConnector`."""
        found = _section(spec)
        account = found.service_account
        assert account is not None, "a region of OpenStack has an account"
        await self._check_target(found.endpoint)
        async with self._client(found) as client:
            try:
                manager = await find_manager(client, _names(account, names))
                settings = await _settings(found, manager)
                access = TenancyAccess(client, manager, self._credentials)
                async with own_project_kept(access):
                    result = await survey(access, settings)
            except ProbeFailed as failed:
                raise Invalid(f"spec.openstack.{failed.field}", failed.problem, remedy=failed.remedy) from None
            except ConnectionError as error:
                raise Unavailable(f"The cloud did not respond to the check ({error}): try again.") from None
        account = replace(account, user_id=manager.user, domain_id=manager.domain)
        return CheckedRegion(
            spec=replace(spec, openstack=replace(found, service_account=account)),
            flavors=result.flavors,
            images=result.images,
            external_networks=result.external_networks,
            findings=[with_common_fields(RegionFinding, each) for each in result.lacks],
        )

    async def release(self, spec: RegionSpec) -> None:
        """Remove the region's own project."""
        found = _section(spec)
        async with self._client(found) as client:
            try:
                await remove_own_project(TenancyAccess(client, _manager(found), self._credentials))
            except ConnectionError as error:
                raise Unavailable(f"The cloud did not respond ({error}): try again.") from None

    @property
    def _credentials(self) -> SealedCredentials:
        return SealedCredentials(TenancyCredentials(self.store))

    @asynccontextmanager
    async def _client(self, found: RegionOpenstack) -> AsyncIterator[OpenStackClient]:
        client = OpenStackClient(await _address(found), clock=self.clock)
        try:
            yield client
        finally:
            await client.close()

    async def _check_target(self, endpoint: str) -> None:
        """Raise Invalid for an endpoint at which no cloud is, such as this machine or a metadata service."""
        field = "spec.openstack.endpoint"
        target = read_target(endpoint)
        if target is None:
            raise Invalid(field, "is not an http or https URL", remedy="write the URL of Keystone")
        try:
            addresses = [target.literal] if target.literal else await self.resolve(target.host, target.port)
        except (OSError, ValueError):
            raise Invalid(field, f"has an unknown host name {target.host}", remedy="check it, and DNS") from None
        policy = AddressPolicy(tuple(map(ip_network, (*PRIVATE_NETWORKS, *self.targets))))
        for address in addresses:
            if not policy.allows(address):
                problem = f"is at {address}, where no cloud may be"
                raise Invalid(field, problem, remedy="use another address, or add its network to region.cloud_targets")


def _section(spec: RegionSpec) -> RegionOpenstack:
    assert spec.openstack is not None, "a region of OpenStack has its section"
    return spec.openstack


def _manager(found: RegionOpenstack) -> Manager:
    account = found.service_account
    if account is None:
        raise Unavailable("The region has no account here: update it with a password.")
    return Manager(account.user_id, account.domain_id, account.password)


def _names(account: ServiceAccountConfig, names: AccountNames) -> ManagerNames:
    return ManagerNames(
        password=account.password,
        user_id=account.user_id,
        user_name=names.user,
        user_domain_name=names.user_domain,
        domain_id=account.domain_id,
        domain_name=names.domain,
    )


async def _address(found: RegionOpenstack) -> CloudAddress:
    tls = await asyncio.to_thread(_tls, found.ca_certificate)
    return CloudAddress(auth_url=found.endpoint, region=found.region, tls=tls)


def _tls(authorities: str) -> ssl.SSLContext:
    """Return the verification of the cloud's certificates. Slow the first time: call it in a thread."""
    tls = new_tls()
    if not authorities:
        return tls
    try:
        return ssl.create_default_context(cadata=authorities)
    except (ssl.SSLError, ValueError):
        problem = "has no certificates"
        raise Invalid("spec.openstack.caCertificate", problem, remedy="give certificates as PEM") from None


async def _settings(found: RegionOpenstack, manager: Manager) -> OpenStackSettings:
    network, compute = found.network, found.compute
    external = None if network is None or network.external_networks is None else network.external_networks.selector
    provider = None if network is None else network.provider_networks
    flavors = None if compute is None else compute.flavors
    preflight = None if compute is None else compute.placement_preflight
    return OpenStackSettings(
        address=await _address(found),
        manager=manager,
        flavors=FlavorSelection(
            ids=frozenset(flavors.selector.ids) if flavors and flavors.selector else frozenset(),
            overrides=_overrides(flavors.metadata if flavors else ()),
        ),
        external_network_ids=frozenset(external.ids if external else ()),
        external_network_tags=frozenset(external.tags if external else ()),
        physical_network=provider.physical_network if provider else "",
        server_group_policy=compute.server_group_policy if compute else "",
        checks_hosts=preflight is not None and preflight.enabled,
        required_traits=preflight.required_traits if preflight else (),
        image_key=_image_key(found),
    )


def _image_key(found: RegionOpenstack) -> bytes:
    """Return the key that signs images as PEM, or nothing."""
    selector = None if found.image is None else found.image.selector
    try:
        return b"" if selector is None else base64.b64decode(selector.signing_key, validate=True)
    except binascii.Error:
        problem = "is not base64"
        raise Invalid("spec.openstack.image.selector.signingKey", problem, remedy="encode the PEM text") from None


def _overrides(metadata: tuple[FlavorMetadata, ...]) -> Mapping[str, FlavorOverride]:
    return {
        each.id: FlavorOverride(
            cpus=each.cpu.count if each.cpu else None,
            cpu_family=(each.cpu.family or "") if each.cpu else "",
            memory_bytes=each.memory,
            gpu=None if each.gpu is None else with_common_fields(CloudGpu, each.gpu, memory_bytes=each.gpu.memory),
            is_baremetal=each.baremetal,
            is_pinned_only=each.pinned_only,
        )
        for each in metadata
    }
