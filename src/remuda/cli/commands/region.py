"""Commands ``remuda region``."""

from remuda.cli.crud import find, show_resource
from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.options import Output
from remuda.cli.output import show_many
from remuda.cli.resources import REGION


async def list(*, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:  # noqa: A001  the command's name
    """List the regions.

    Example::

        remuda region list -o name
    """
    async with scope.open() as api:
        found = await api.session.list_all(REGION.service, REGION.path, REGION.read_type, paged=False)
        show_many(found, REGION.columns, output, empty="No region found.")


async def show(region: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Show a region and its capabilities.

    Example::

        remuda region show sim-north

    :param region: Name or id of the region.
    """
    async with scope.open() as api:
        await show_resource(api, REGION, await find(api, REGION, region), output)
