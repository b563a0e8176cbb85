"""The hash of a plan: whoever sends it back has seen this plan, and no other.

It covers which instance it is about (its uid, so not one that was made again under the same name), all that a client
may change of it, before and after, and the flavors and images involved, as they are on offer. So another PUT in
between, or a flavor that has become another one, makes another plan. What is only observed is not in it: addresses,
power, how many of a flavor are free, whether an image is ready, what is held of the quota until now.
"""

from typing import Any

from msgspec.structs import replace

from remuda.compute.plans.schema import StepRead, Thing
from remuda.compute.plans.sides import Side
from remuda.kernel.encoding import digest
from remuda.resources.schema import FlavorRead, ImageRead

_DIGITS = 32


def hash_of(
    uid: str,
    before: Side,
    after: Side,
    *,
    steps: tuple[StepRead, ...],
    lost: tuple[Thing, ...],
) -> str:
    """Return the hash of a plan. What is done and lost follows from the rest, and from what the provider can do."""
    facts = {
        "uid": uid,
        "before": _side(before),
        "after": _side(after),
        "steps": [(step.kind, [change.field for change in step.changes]) for step in steps],
        "lost": lost,
    }
    return digest(facts)[:_DIGITS]


def _side(side: Side) -> dict[str, Any]:
    return {"writable": side.writable, "flavor": _flavor(side.flavor), "image": _image(side.image)}


def _flavor(flavor: FlavorRead | None) -> Any:
    return None if flavor is None else (flavor.metadata.id, replace(flavor.spec, free=None))


def _image(image: ImageRead | None) -> Any:
    return None if image is None else (image.metadata.id, image.spec)
