"""Waiting for images."""

from typing import Any

from remuda.cli.crud import id_of
from remuda.cli.lookup import Asked
from remuda.cli.naming import among
from remuda.cli.offers import offers
from remuda.cli.options import Waiting
from remuda.cli.progress import until
from remuda.cli.resources import IMAGE


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
