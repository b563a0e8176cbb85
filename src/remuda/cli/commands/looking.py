"""``remuda instance list`` and ``show``."""

from typing import Any

from remuda.cli.crud import find, id_of, list_all, show_found
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.offers import offers
from remuda.cli.options import Format, Output, Watch
from remuda.cli.resources import FLAVOR, IMAGE, INSTANCE, NETWORK, Noun
from remuda.kernel.errors import RemudaError


def list(  # noqa: A001  the command's name
    *, network: str | None = None, watch: Watch = False, output: Output = "table", where: Where = HERE
) -> None:
    """List the instances of the project.

    Parameters
    ----------
    network
        Only those on this network, by name or id.

    """
    with where.open() as asked:
        more = {} if network is None else {"networkID": id_of(find(asked, NETWORK, network))}
        list_all(asked, INSTANCE, output, watch=watch, more=more)


def show(instance: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Show an instance.

    Parameters
    ----------
    instance
        Its name or id.

    """
    with where.open() as asked:
        show_instance(asked, find(asked, INSTANCE, instance), output)


def show_instance(asked: Asked, instance: Any, output: Format) -> None:
    """Show an instance; for people, with the names of what it is made of."""
    region = instance["status"]["regionId"]
    names = _offered(asked, FLAVOR, region) | _offered(asked, IMAGE, region) if output == "table" else {}
    show_found(asked, INSTANCE, instance, output, names)


def _offered(asked: Asked, noun: Noun, region: str) -> dict[str, str]:
    try:
        return {id_of(each): each["metadata"]["name"] for each in offers(asked, noun, region)}
    except RemudaError:
        return {}
