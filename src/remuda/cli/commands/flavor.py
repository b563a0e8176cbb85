"""Commands ``remuda flavor``: sizes of instances that regions offer."""

from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.offers import list_offers, show_offer
from remuda.cli.options import Output
from remuda.cli.resources import FLAVOR


async def list(*, region: str | None = None, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:  # noqa: A001  the command's name
    """List the flavors, the smallest first, and how many more instances of each fit.

    Example::

        remuda flavor list --region sim-north

    :param region: List only the flavors of this region, by name or id.
    """
    async with scope.open() as api:
        await list_offers(api, FLAVOR, region, output, is_sorted=True)


async def show(
    flavor: str, /, *, region: str | None = None, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Show a flavor.

    Example::

        remuda flavor show sim-small-1 --region sim-north

    :param flavor: Name or id of the flavor.
    :param region: Show the flavor of this region, by name or id. Needed only if several regions have it.
    """
    async with scope.open() as api:
        await show_offer(api, FLAVOR, flavor, region, output)
