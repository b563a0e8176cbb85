"""``remuda network``."""

from typing import Annotated

from cyclopts import Parameter

from remuda.cli.crud import change_one, delete_one, find, id_of, list_all, make_one, naming_holders, settled, show_found
from remuda.cli.lookup import HERE, Where, resolve
from remuda.cli.options import ABOUT, AT_ONCE, About, Many, Output, Waiting, Watch, Yes, check_address, checked_prefix
from remuda.cli.resources import NETWORK, REGION
from remuda.kernel.errors import Invalid

_LONGEST_MASK = 24


def list(*, watch: Watch = False, output: Output = "table", where: Where = HERE) -> None:  # noqa: A001  the command's name
    """List the networks of the project."""
    with where.open() as asked:
        list_all(asked, NETWORK, output, watch=watch)


def show(network: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Show a network.

    Parameters
    ----------
    network
        Its name or id.

    """
    with where.open() as asked:
        show_found(asked, NETWORK, find(asked, NETWORK, network), output)


def create(
    name: str,
    /,
    *,
    region: str,
    prefix: str = "10.0.0.0/24",
    dns: Many = (),
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Make a network.

    Parameters
    ----------
    name
        What to call it.
    region
        Where it is to be, by name or id.
    prefix
        Its addresses, as an IPv4 prefix of /24 or larger.
    dns
        A name server for what is on it; say it again for another one. Without any it is the provider's.

    """
    _check_prefix(prefix)
    _check_servers(dns)
    with where.open() as asked:
        place = asked.needs_project()
        spec = {
            "organizationId": place.organization,
            "projectId": place.project,
            "regionId": id_of(resolve(asked.session, "region", REGION.path, region, "region")),
            "prefix": prefix,
            "dnsNameservers": [*dns],
        }
        body = {"metadata": about.metadata({"name": name}), "spec": spec}
        show_found(asked, NETWORK, make_one(asked, NETWORK, body, waiting=waiting), output)


def update(
    network: str,
    /,
    *,
    dns: Annotated[tuple[str, ...] | None, Parameter(negative="--no-dns")] = None,
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Change a network.

    Parameters
    ----------
    network
        Its name or id.
    dns
        A name server for what is on it, instead of those it has; say it again for another one.

    """
    _check_servers(dns or ())
    new = {} if dns is None else {"dnsNameservers": [*dns]}
    with where.open() as asked:
        changed = change_one(asked, NETWORK, network, about, lambda spec: {**spec, **new})
        show_found(asked, NETWORK, settled(asked, NETWORK, changed, waiting=waiting), output)


def delete(network: str, /, *, yes: Yes = False, waiting: Waiting = AT_ONCE, where: Where = HERE) -> None:
    """Give up a network. While something is on it, it stays.

    Parameters
    ----------
    network
        Its name or id.

    """
    with where.open() as asked, naming_holders(asked, NETWORK, network):
        delete_one(asked, NETWORK, network, yes=yes, waiting=waiting)


def _check_prefix(text: str) -> None:
    if checked_prefix("--prefix", text).prefixlen > _LONGEST_MASK:
        remedy = f"write one of /{_LONGEST_MASK} or larger, such as 10.0.0.0/{_LONGEST_MASK}"
        raise Invalid("--prefix", f"{text} is too small for a network", remedy=remedy)


def _check_servers(dns: tuple[str, ...]) -> None:
    for each in dns:
        check_address("--dns", each)
