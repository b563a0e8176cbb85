"""``remuda image``: what instances are made of."""

from typing import Annotated, Literal

from cyclopts import Parameter

from remuda.cli.crud import agreed, id_of
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.offers import Offer, find_offer, list_offers, region_called, show_offer, until_ready
from remuda.cli.options import ABOUT, AT_ONCE, About, Output, Waiting, Yes
from remuda.cli.output import say, show_one
from remuda.cli.resources import IMAGE
from remuda.kernel.errors import Unusable


def list(*, region: str | None = None, output: Output = "table", where: Where = HERE) -> None:  # noqa: A001  the command's name
    """List the images that there are: everybody's, and those of your organization.

    Parameters
    ----------
    region
        Only those of this region, by name or id.

    """
    with where.open() as asked:
        list_offers(asked, IMAGE, region, output)


def show(image: str, /, *, region: str | None = None, output: Output = "table", where: Where = HERE) -> None:
    """Show an image.

    Parameters
    ----------
    image
        Its name or id.
    region
        In this region, by name or id. It need not be said if only one region has it.

    """
    with where.open() as asked:
        show_offer(asked, IMAGE, image, region, output)


def import_(
    name: str,
    /,
    *,
    region: str,
    url: str,
    distro: str,
    release: Annotated[str, Parameter(help="The release of the system on it, such as 24.04.")],
    family: str = "debian",
    architecture: Literal["x86_64", "aarch64"] = "x86_64",
    runs_on: Literal["any", "virtualized", "baremetal"] = "any",
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Have an image fetched from elsewhere, for your organization.

    Parameters
    ----------
    name
        What to call it.
    region
        Where it is to be, by name or id.
    url
        Where it is now: a raw disk with a master boot record, on a public http or https server.
    distro
        The system on it, such as ubuntu.
    family
        What its packages are, such as debian or redhat.
    architecture
        What it is built for.
    runs_on
        What it can run on.

    """
    system = {"kernel": "linux", "family": family, "distro": distro, "version": release}
    spec = {"uri": url, "architecture": architecture, "virtualization": runs_on, "os": system}
    with where.open() as asked:
        place = id_of(region_called(asked, region))
        path = f"/api/v1/organizations/{asked.needs_organization()}/regions/{place}/images"
        body = {"metadata": about.metadata({"name": name}), "spec": spec}
        made = asked.session.ask("POST", IMAGE.service, path, body)
        show_one(until_ready(asked, place, made, waiting) if waiting.wait else made, IMAGE.details, output)


def delete(image: str, /, *, region: str | None = None, yes: Yes = False, where: Where = HERE) -> None:
    """Give up an image of your organization. While an instance is made of it, it stays.

    Parameters
    ----------
    image
        Its name or id.
    region
        In this region, by name or id. It need not be said if only one region has it.

    """
    with where.open() as asked:
        found = find_offer(asked, IMAGE, image, region)
        name = found.thing["metadata"]["name"]
        _check_own(asked, found)
        agreed(f"The image {name} of {found.region_name} will be deleted, and cannot be had back.", yes=yes)
        place = f"/api/v1/organizations/{asked.needs_organization()}/regions/{found.region}"
        asked.session.ask("DELETE", IMAGE.service, f"{place}/images/{id_of(found.thing)}")
        say(f"The image {name} is being deleted.")


def _check_own(asked: Asked, found: Offer) -> None:
    """Refuse an image that everybody has, before anybody agrees to anything."""
    query = {"organizationID": asked.needs_organization(), "scope": "owned"}
    own = asked.session.get(IMAGE.service, IMAGE.path.format(region=found.region), query)
    if id_of(found.thing) not in map(id_of, own):
        name = found.thing["metadata"]["name"]
        raise Unusable(f"The image {name} is not one of your organization: whoever runs the platform can delete it.")
