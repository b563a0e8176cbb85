"""``remuda region``: where networks and instances can be."""

from remuda.cli.crud import show_found
from remuda.cli.lookup import HERE, Where
from remuda.cli.offers import region_called
from remuda.cli.options import Output
from remuda.cli.output import show_many
from remuda.cli.resources import REGION


def list(*, output: Output = "table", where: Where = HERE) -> None:  # noqa: A001  the command's name
    """List the regions that there are."""
    with where.open() as asked:
        found = asked.session.get_all(REGION.service, REGION.path)
        show_many(found, REGION.columns, output, empty="There is no region.")


def show(region: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Show a region, and what it can do.

    Parameters
    ----------
    region
        Its name or id.

    """
    with where.open() as asked:
        show_found(asked, REGION, region_called(asked, region), output)
