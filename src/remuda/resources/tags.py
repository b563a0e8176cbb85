"""Reserved tags: `compute.unikorn-cloud.org/…` and `compute.unikorn-cloud.org:…` belong to the compute service.

Services find and describe their objects by such tags, so no other caller may write them, on any kind. A caller that
replaces an object's tags leaves those of other services as they are: it may send them back unchanged or omit them.

If such a tag is a valid label, the object has it as a label too, so that its service finds the object by an index.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag
from remuda.resources.schema import TagWire
from remuda.store.validation import check_selector

_RESERVED = re.compile(r"(?:([a-z0-9-]+)\.)*?([a-z0-9-]+)\.unikorn-cloud\.org[/:]", re.IGNORECASE)
_SERVICE_NAMES = ("unikorn-", "uni-")
MAX_BYTES = 16 * 1024
"""Largest size of the tags of one object, in bytes of their names and values."""
_LABEL_PREFIXES = {"regions", "principal", "resource"}  # objects have labels with these prefixes anyway


@lru_cache(maxsize=256)
def reserving_service(name: str) -> str | None:
    """Return the service to which a tag's name belongs, or None if every caller may use it.

    Cached, because services use the same few names for every object, and check them several times.
    """
    found = _RESERVED.match(name)
    return None if found is None else found[2].lower()


def is_reserved(name: str) -> bool:
    """Return whether a tag's name belongs to a service."""
    return reserving_service(name) is not None


def check_tags(tags: Sequence[Tag | TagWire]) -> None:
    """Raise Invalid if a tag occurs twice, or if those of users take more than `MAX_BYTES` in all.

    Tags of services are few and small.
    """
    size = sum(len(tag.name.encode()) + len(tag.value.encode()) for tag in tags if not is_reserved(tag.name))
    if size > MAX_BYTES:
        raise Invalid(
            "metadata.tags",
            f"take {size} bytes",
            remedy=f"send names and values of at most {MAX_BYTES} bytes of UTF-8 in all",
        )
    for name, count in Counter(tag.name for tag in tags).items():
        if count > 1:
            raise Invalid("metadata.tags", f"has {name!r} twice", remedy="give each tag one value")


def own_tags(requested: Sequence[Tag], principal: Principal) -> tuple[Tag, ...]:
    """Return the tags of a new object, or raise Invalid as `replaced_tags` does."""
    return replaced_tags((), requested, principal)


def replaced_tags(before: Sequence[Tag], requested: Sequence[Tag], principal: Principal) -> tuple[Tag, ...]:
    """Return the tags after an update.

    Raise Invalid if one belongs to another service or occurs twice, or if they are too large.
    """
    check_tags(requested)
    service = _service_of(principal)
    others = {tag.name: tag for tag in before if reserving_service(tag.name) not in {None, service}}
    for tag in requested:
        if reserving_service(tag.name) not in {None, service} and others.get(tag.name) != tag:
            raise Invalid("metadata.tags", f"has {tag.name!r}, which only a service may set", remedy="leave it out")
    return (*(tag for tag in requested if tag.name not in others), *others.values())


def writable_tags(requested: Sequence[Tag], principal: Principal) -> tuple[Tag, ...]:
    """Return the tags that a caller may write, without those of other services."""
    service = _service_of(principal)
    return tuple(tag for tag in requested if reserving_service(tag.name) in {None, service})


def tag_labels(tags: Iterable[Tag]) -> dict[str, str]:
    """Return the tags of services that are valid labels, as labels."""
    return {tag.name: tag.value for tag in tags if _is_label(tag)}


def relabelled(labels: Mapping[str, str], before: Iterable[Tag], after: Iterable[Tag]) -> dict[str, str]:
    """Return the labels of an object whose tags have changed."""
    stale = tag_labels(before)
    return {label: value for label, value in labels.items() if label not in stale} | tag_labels(after)


def _is_label(tag: Tag) -> bool:
    service = reserving_service(tag.name)
    if service is None or service in _LABEL_PREFIXES:
        return False
    try:
        check_selector({tag.name: tag.value})
    except Invalid:
        return False
    return True


def _service_of(principal: Principal) -> str | None:
    """Return the service that acts, on its own or another caller's behalf."""
    name = principal.service or (principal.subject if principal.type == "system" else None)
    if name is None:
        return None
    for beginning in _SERVICE_NAMES:
        name = name.removeprefix(beginning)
    return name
