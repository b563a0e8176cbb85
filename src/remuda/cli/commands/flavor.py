"""``remuda flavor``: the sizes of instances that regions offer."""

from remuda.cli.lookup import HERE, Where
from remuda.cli.offers import list_offers, show_offer
from remuda.cli.options import Output
from remuda.cli.resources import FLAVOR


def list(*, region: str | None = None, output: Output = "table", where: Where = HERE) -> None:  # noqa: A001  the command's name
    """List the flavors that there are. FREE is how many more instances fit.

    Parameters
    ----------
    region
        Only those of this region, by name or id.

    """
    with where.open() as asked:
        list_offers(asked, FLAVOR, region, output)


def show(flavor: str, /, *, region: str | None = None, output: Output = "table", where: Where = HERE) -> None:
    """Show a flavor.

    Parameters
    ----------
    flavor
        Its name or id.
    region
        In this region, by name or id. It need not be said if only one region has it.

    """
    with where.open() as asked:
        show_offer(asked, FLAVOR, flavor, region, output)
