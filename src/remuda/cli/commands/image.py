"""Commands ``remuda image``."""

from typing import Annotated, Literal

from cyclopts import Parameter

from remuda.cli.crud import confirm, find_id
from remuda.cli.lookup import DEFAULT_SCOPE, NamedResource, ScopedSession, ScopeOptions
from remuda.cli.offers import Offer, find_offer, list_offers, reject_duplicate_image, show_image, show_offer, wait_ready
from remuda.cli.options import NEW_METADATA, NO_WAIT, NewMetadataOptions, Output, WaitOptions, Yes
from remuda.cli.output import echo
from remuda.cli.resources import IMAGE, REGION
from remuda.kernel.errors import Unusable
from remuda.kernel.secrets import Secret
from remuda.region.images.schema import ImageCreate, ImageCreateSpec
from remuda.resources.schema import ImageOsWire, ImageRead

_PATH = "/api/v1/organizations/{organization}/regions/{region}/images"


async def list(*, region: str | None = None, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:  # noqa: A001  the command's name
    """List the public images and those of the organization.

    Example::

        remuda image list --region sim-north

    :param region: List only the images of this region, by name or id.
    """
    async with scope.open() as api:
        await list_offers(api, IMAGE, region, output)


async def show(
    image: str, /, *, region: str | None = None, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Show an image.

    Example::

        remuda image show ubuntu-22.04-amd64 --region sim-north

    :param image: Name or id of the image.
    :param region: Show the image of this region, by name or id. Needed only if several regions have it.
    """
    async with scope.open() as api:
        await show_offer(api, IMAGE, image, region, output)


async def import_(
    name: str,
    /,
    *,
    region: str,
    url: str,
    distro: str,
    release: Annotated[str, Parameter(help="Set the release of the operating system, such as 24.04.")],
    family: str = "debian",
    architecture: Literal["x86_64", "aarch64"] = "x86_64",
    virtualization: Literal["any", "virtualized", "baremetal"] = "any",
    metadata: NewMetadataOptions = NEW_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    r"""Import an image from a URL for the organization.

    Example::

        remuda image import noble --region sim-north --distro ubuntu \
            --release 24.04 --url https://images.example.com/noble.raw --wait

    :param name: Name of the image.
    :param region: Import the image into this region, by name or id.
    :param url: Fetch the image from this public http or https URL: a raw disk with a master boot record.
    :param distro: Set the distribution, such as ubuntu.
    :param family: Set the package family, such as debian or redhat.
    :param architecture: Set the architecture that the image is built for.
    :param virtualization: Set the kind of machine that the image runs on.
    """
    spec = ImageCreateSpec(
        uri=Secret(url),
        architecture=architecture,
        virtualization=virtualization,
        os=ImageOsWire(kernel="linux", family=family, distro=distro, version=release),
    )
    async with scope.open() as api:
        region_id = await find_id(api, REGION, region)
        path = _PATH.format(organization=api.require_organization(), region=region_id)
        if not metadata.allow_duplicate:
            await reject_duplicate_image(api, region_id, name)
        body = ImageCreate(metadata=metadata.metadata(name), spec=spec)
        created = await api.session.send("POST", IMAGE.service, path, body, response_type=ImageRead)
        await show_image(api, region_id, await wait_ready(api, region_id, created, wait), output)


async def delete(
    image: str, /, *, region: str | None = None, yes: Yes = False, scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Delete an image of the organization that no instance uses.

    Example::

        remuda image delete noble --yes

    :param image: Name or id of the image.
    :param region: Delete the image of this region, by name or id. Needed only if several regions have it.
    """
    async with scope.open() as api:
        found = await find_offer(api, IMAGE, image, region)
        name = found.item.metadata.name
        await _check_owned(api, found)
        confirm(f"The image {name} of {found.region_name} will be deleted. This cannot be undone.", yes=yes)
        path = _PATH.format(organization=api.require_organization(), region=found.region)
        await api.session.send("DELETE", IMAGE.service, f"{path}/{found.item.metadata.id}", response_type=type(None))
        echo(f"The image {name} is being deleted.")


async def _check_owned(api: ScopedSession, found: Offer[ImageRead]) -> None:
    """Reject a public image before the user has to confirm anything."""
    query = {"organizationID": api.require_organization(), "scope": "owned"}
    path, metadata = IMAGE.path.format(regionID=found.region), found.item.metadata
    owned = await api.session.get(IMAGE.service, path, tuple[NamedResource, ...], query)
    if metadata.id not in {each.metadata.id for each in owned}:
        message = f"The image {metadata.name} does not belong to the organization: ask the operator of the platform."
        raise Unusable(message)
