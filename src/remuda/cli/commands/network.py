"""Commands ``remuda network``."""

from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from remuda.cli.crud import (
    create_resource,
    delete_resource,
    find,
    find_id,
    list_resources,
    naming_users,
    show_resource,
    update_resource,
    wait_provisioned,
)
from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.options import (
    NEW_METADATA,
    NO_METADATA,
    NO_WAIT,
    Many,
    MetadataOptions,
    NewMetadataOptions,
    Output,
    WaitOptions,
    Watch,
    Yes,
    check_address,
    checked_prefix,
)
from remuda.cli.resources import NETWORK, REGION
from remuda.kernel.errors import Invalid
from remuda.region.networks.schema import NetworkCreate, NetworkCreateSpec, NetworkRead, NetworkUpdate

_MAX_MASK = 24


async def list(*, watch: Watch = False, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:  # noqa: A001  the command's name
    """List the networks of the project.

    Example::

        remuda network list --watch
    """
    async with scope.open() as api:
        await list_resources(api, NETWORK, output, watch=watch)


async def show(network: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Show a network.

    Example::

        remuda network show lab

    :param network: Name or id of the network.
    """
    async with scope.open() as api:
        await show_resource(api, NETWORK, await find(api, NETWORK, network), output)


async def create(
    name: str,
    /,
    *,
    region: str,
    prefix: str = "10.0.0.0/24",
    dns: Many = (),
    metadata: NewMetadataOptions = NEW_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Create a network.

    Example::

        remuda network create lab --region sim-north --prefix 10.1.0.0/24 --wait

    :param name: Name of the network.
    :param region: Create the network in this region, by name or id.
    :param prefix: Use addresses of this IPv4 prefix, /24 or larger.
    :param dns: Use this name server; the default is the provider's. Repeat it for more servers.
    """
    _check_prefix(prefix)
    _check_servers(dns)
    async with scope.open() as api:
        project = api.require_project()
        spec = NetworkCreateSpec(
            organization_id=project.organization,
            project_id=project.project,
            region_id=await find_id(api, REGION, region),
            prefix=prefix,
            dns_nameservers=dns,
        )
        body = NetworkCreate(metadata=metadata.metadata(name), spec=spec)
        await show_resource(
            api,
            NETWORK,
            await create_resource(api, NETWORK, body, wait=wait, duplicates=metadata.allow_duplicate),
            output,
        )


async def update(
    network: str,
    /,
    *,
    dns: Annotated[tuple[str, ...] | None, Parameter(negative="--no-dns")] = None,
    metadata: MetadataOptions = NO_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Update a network.

    Example::

        remuda network update lab --dns 192.0.2.53

    :param network: Name or id of the network.
    :param dns: Use this name server instead of the present ones. Repeat it for more servers.
    """
    _check_servers(dns or ())

    def body(found: NetworkRead) -> NetworkUpdate:
        spec = found.spec if dns is None else replace(found.spec, dns_nameservers=dns)
        return NetworkUpdate(metadata=metadata.metadata(found.metadata.name, found.metadata), spec=spec)

    async with scope.open() as api:
        updated = await update_resource(api, NETWORK, network, body)
        await show_resource(api, NETWORK, await wait_provisioned(api, NETWORK, updated, wait=wait), output)


async def delete(
    network: str, /, *, yes: Yes = False, wait: WaitOptions = NO_WAIT, scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Delete a network that nothing uses.

    Example::

        remuda network delete lab --yes

    :param network: Name or id of the network.
    """
    async with scope.open() as api, naming_users(api, NETWORK, network):
        await delete_resource(api, NETWORK, network, yes=yes, wait=wait)


def _check_prefix(text: str) -> None:
    if checked_prefix("--prefix", text).prefixlen > _MAX_MASK:
        remedy = f"give one of /{_MAX_MASK} or larger, such as 10.0.0.0/{_MAX_MASK}"
        raise Invalid("--prefix", f"{text} is too small for a network", remedy=remedy)


def _check_servers(dns: tuple[str, ...]) -> None:
    for each in dns:
        check_address("--dns", each)
