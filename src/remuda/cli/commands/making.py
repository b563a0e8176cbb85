"""``remuda instance create`` and ``delete``."""

from remuda.cli.commands.instance import EXTRAS, Extras
from remuda.cli.commands.looking import show_instance
from remuda.cli.crud import delete_one, find, id_of, make_one
from remuda.cli.lookup import HERE, Where
from remuda.cli.offers import offered
from remuda.cli.options import ABOUT, AT_ONCE, About, Output, Waiting, Yes
from remuda.cli.resources import FLAVOR, IMAGE, INSTANCE, NETWORK


def create(
    name: str,
    /,
    *,
    network: str,
    flavor: str,
    image: str,
    extras: Extras = EXTRAS,
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Make an instance.

    Parameters
    ----------
    name
        What to call it; no other on its network is called so.
    network
        The network it is on, by name or id; it also says in which region.
    flavor
        How large it is, by name or id; see remuda flavor list.
    image
        What it is made of, by name or id; see remuda image list.

    """
    with where.open() as asked:
        place = asked.needs_project()
        found = find(asked, NETWORK, network)
        region = found["status"]["regionId"]
        spec = {
            "organizationId": place.organization,
            "projectId": place.project,
            "networkId": id_of(found),
            "flavorId": offered(asked, FLAVOR, region, flavor),
            "imageId": offered(asked, IMAGE, region, image),
        }
        body = {"metadata": about.metadata({"name": name}), "spec": extras.applied(asked, spec, id_of(found))}
        show_instance(asked, make_one(asked, INSTANCE, body, waiting=waiting), output)


def delete(instance: str, /, *, yes: Yes = False, waiting: Waiting = AT_ONCE, where: Where = HERE) -> None:
    """Give up an instance, with its disk and its addresses.

    Parameters
    ----------
    instance
        Its name or id.

    """
    with where.open() as asked:
        delete_one(asked, INSTANCE, instance, yes=yes, waiting=waiting, lost=" with its disk and its addresses")
