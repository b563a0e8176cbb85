"""What regions offer, flavors and images: shown, and found by name or id in one region or in all of them.

Waiting for images.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remuda.cli.crud import id_of
from remuda.cli.lookup import Asked, among, resolve
from remuda.cli.options import Waiting
from remuda.cli.output import Columns, Format, show_many, show_one
from remuda.cli.progress import until
from remuda.cli.resources import IMAGE, REGION, Noun
from remuda.kernel.errors import Unusable


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that a region offers."""

    thing: Any
    region: str
    region_name: str


def region_called(asked: Asked, wanted: str) -> Any:
    """Return the region of this name or id."""
    return resolve(asked.session, REGION.service, REGION.path, wanted, REGION.word)


def offers(asked: Asked, noun: Noun, region: str) -> list[Any]:
    """Return what a region offers; of images, also those of one's own organization."""
    query = {"organizationID": asked.place.organization or None} if noun is IMAGE else None
    found: list[Any] = asked.session.get(noun.service, noun.path.format(region=region), query)
    return found


def offered(asked: Asked, noun: Noun, region: str, wanted: str) -> str:
    """Return the id of something that a region offers, by its name or id."""
    found = offers(asked, noun, region)
    usable = [each for each in found if not _is_for_clusters(each)]
    thing = among(usable if wanted not in {each["metadata"]["name"] for each in found} else found, wanted, noun.word)
    if _is_for_clusters(thing):
        raise Unusable(f"The image {wanted} is for the nodes of clusters: choose one without Kubernetes on it.")
    return id_of(thing)


def _is_for_clusters(thing: Any) -> bool:
    """Tell whether instances cannot be made of an image: it has a Kubernetes on it."""
    return "kubernetes" in (thing["spec"].get("softwareVersions") or {})


def find_offer(asked: Asked, noun: Noun, wanted: str, region: str | None) -> Offer:
    """Return something by its name or id, in a region or in the only one that has it."""
    found = _all(asked, noun, region)
    matching = [each for each in found if wanted in {id_of(each.thing), each.thing["metadata"]["name"]}]
    if len(places := sorted({each.region_name for each in matching})) > 1:
        raise Unusable(f"The {noun.word} {wanted} is in {' and '.join(places)}: say which with --region.")
    thing = among([each.thing for each in matching or found], wanted, noun.word)
    return next(each for each in matching if each.thing is thing)


def list_offers(asked: Asked, noun: Noun, region: str | None, output: Format) -> None:
    """Show all that a region offers, or all regions do."""
    found = _all(asked, noun, region)
    where = {id(each.thing): each.region_name for each in found}
    show_many([each.thing for each in found], _placed(noun.columns, where), output, empty=f"There is no {noun.word}.")


def show_offer(asked: Asked, noun: Noun, wanted: str, region: str | None, output: Format) -> None:
    """Show one thing that a region offers."""
    found = find_offer(asked, noun, wanted, region)
    show_one(found.thing, _placed(noun.details, {id(found.thing): found.region_name}), output)


def _all(asked: Asked, noun: Noun, region: str | None) -> list[Offer]:
    found = asked.session.get_all(REGION.service, REGION.path) if region is None else [region_called(asked, region)]
    return [
        Offer(thing, id_of(each), each["metadata"]["name"])
        for each in sorted(found, key=lambda each: str(each["metadata"]["name"]))
        for thing in offers(asked, noun, id_of(each))
    ]


def _placed(columns: Columns, where: Mapping[int, str]) -> Columns:
    """Return columns with that of the region after the first; `where` each thing is, by its identity in memory."""
    first, *rest = columns.items()
    return dict([first, ("REGION", lambda thing: where[id(thing)]), *rest])


def until_ready(asked: Asked, region: str, image: Any, waiting: Waiting) -> Any:
    """Wait until instances can be made of an image, and return it; raise if they never will be."""
    return until(
        lambda: among(offers(asked, IMAGE, region), id_of(image), IMAGE.word),
        lambda now: now["status"]["state"] == "ready",
        lambda now: now["status"]["state"] == "failed",
        limit_s=waiting.limit_s,
        look=IMAGE.look(image["metadata"]["name"]),
        progress=lambda now: f"{now['metadata']['name']} is {now['status']['state']}",
        remedy="delete it, and try again",
    )
