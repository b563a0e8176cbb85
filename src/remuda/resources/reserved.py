"""Reserved tags: `compute.unikorn-cloud.org/…` and `compute.unikorn-cloud.org:…` are the compute service's own.

Services find and describe their things by such tags, so nobody else may write one, on any kind. Whoever replaces an
object's tags leaves those of other services as they are: to send them back unchanged is fine, and to leave them out
takes nothing away.
"""

import re
from collections.abc import Sequence

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag

__all__ = ["is_reserved", "own_tags", "replaced_tags", "reserving_service"]

_RESERVED = re.compile(r"(?:([a-z0-9-]+)\.)*?([a-z0-9-]+)\.unikorn-cloud\.org[/:]", re.IGNORECASE)
_SERVICE_NAMES = ("unikorn-", "uni-")


def reserving_service(name: str) -> str | None:
    """Return which service a tag's name belongs to, or None if anybody may use it."""
    found = _RESERVED.match(name)
    return None if found is None else found[2].lower()


def is_reserved(name: str) -> bool:
    """Tell whether a tag's name belongs to a service."""
    return reserving_service(name) is not None


def own_tags(wanted: Sequence[Tag], principal: Principal) -> tuple[Tag, ...]:
    """Return the tags of something new, or raise Invalid if one of them is another's."""
    return replaced_tags((), wanted, principal)


def replaced_tags(before: Sequence[Tag], wanted: Sequence[Tag], principal: Principal) -> tuple[Tag, ...]:
    """Return tags as they are after a change that asks for these, or raise Invalid if one of them is another's."""
    service = _service_of(principal)
    others = {tag.name: tag for tag in before if reserving_service(tag.name) not in {None, service}}
    for tag in wanted:
        if reserving_service(tag.name) not in {None, service} and others.get(tag.name) != tag:
            raise Invalid("metadata.tags", f"has {tag.name!r}, which only a service may set", remedy="leave it out")
    return (*(tag for tag in wanted if tag.name not in others), *others.values())


def _service_of(principal: Principal) -> str | None:
    """Return the service that acts, whoever it acts for."""
    name = principal.service or (principal.subject if principal.type == "system" else None)
    if name is None:
        return None
    for beginning in _SERVICE_NAMES:
        name = name.removeprefix(beginning)
    return name
