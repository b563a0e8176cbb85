"""Reserved tags: `compute.unikorn-cloud.org/…` and `compute.unikorn-cloud.org:…` are the compute service's own.

Services find and describe their things by such tags, so nobody else may write one, on any kind. Whoever replaces an
object's tags leaves those of other services as they are: to send them back unchanged is fine, and to leave them out
takes nothing away.

A service finds what it has tagged by an index: where such a tag fits a label, the object carries it as one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag
from remuda.store.validation import check_selector

_RESERVED = re.compile(r"(?:([a-z0-9-]+)\.)*?([a-z0-9-]+)\.unikorn-cloud\.org[/:]", re.IGNORECASE)
_SERVICE_NAMES = ("unikorn-", "uni-")
_LABELLING = {"regions", "principal", "resource"}  # their prefixes are those of labels that objects have anyway


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


def writable_tags(wanted: Sequence[Tag], principal: Principal) -> tuple[Tag, ...]:
    """Return the tags that a caller may write, without those that are another's."""
    service = _service_of(principal)
    return tuple(tag for tag in wanted if reserving_service(tag.name) in {None, service})


def tag_labels(tags: Iterable[Tag]) -> dict[str, str]:
    """Return the labels by which services find what they have tagged: their tags, as far as those fit a label."""
    return {tag.name: tag.value for tag in tags if _is_label(tag)}


def relabelled(labels: Mapping[str, str], before: Iterable[Tag], after: Iterable[Tag]) -> dict[str, str]:
    """Return the labels of an object whose tags have changed."""
    stale = tag_labels(before)
    return {label: value for label, value in labels.items() if label not in stale} | tag_labels(after)


def _is_label(tag: Tag) -> bool:
    service = reserving_service(tag.name)
    if service is None or service in _LABELLING:
        return False
    try:
        check_selector({tag.name: tag.value})
    except Invalid:
        return False
    return True


def _service_of(principal: Principal) -> str | None:
    """Return the service that acts, whoever it acts for."""
    name = principal.service or (principal.subject if principal.type == "system" else None)
    if name is None:
        return None
    for beginning in _SERVICE_NAMES:
        name = name.removeprefix(beginning)
    return name
