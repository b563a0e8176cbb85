"""References that come over the API: what of another service keeps an object of ours, written as a finalizer."""

from collections import Counter
from collections.abc import Mapping, Sequence

from remuda.kernel.errors import Invalid
from remuda.store.objects import OURS
from remuda.store.validation import check_qualified

_NAMED = 5
_NOUNS: Mapping[str, str] = {
    "computeinstances": "instance",
    "filestorages": "file storage",
    "loadbalancers": "load balancer",
    "networks": "network",
    "securitygroups": "security group",
    "servers": "server",
    "sshcertificateauthorities": "SSH certificate authority",
}
"""What people call a kind."""
_HIDDEN: Mapping[str, str] = {"identities": "network"}
"""What stands for something else, which people know, and has an id that nobody is shown."""


def check_reference(reference: str, *, own: str) -> None:
    """Refuse what is no reference of another service's, on its way in and on its way out alike.

    Such are the finalizers by which we keep things ourselves (what begins as `own`, and the store's), and what no
    backend could keep.
    """
    owner, _, name = reference.partition("/")
    if "." not in owner or not name or owner == own.partition("/")[0] or reference in OURS:
        raise Invalid("reference", "is not a resource's", remedy="write it as plural.group/id")
    check_qualified("reference", reference)


def in_words(references: Sequence[str]) -> str:
    """Say what refers to an object: of which sort, which one, and of which service, where it is to be looked at."""
    said = [_said(*thing, count) for thing, count in Counter(map(_read, references)).items()]
    return ", ".join(said[:_NAMED]) + (" and more" if len(said) > _NAMED else "")


def _read(reference: str) -> tuple[str, str, str]:
    """Return the noun, the name, which is empty if nobody knows it, and the service."""
    owner, _, name = reference.partition("/")
    plural, _, group = owner.partition(".")
    service = group.partition(".")[0]
    return (_HIDDEN[plural], "", service) if plural in _HIDDEN else (_NOUNS.get(plural, plural), name, service)


def _said(noun: str, name: str, service: str, count: int) -> str:
    if name:
        return f"{noun} {name} of {service}"
    return f"a {noun} of {service}" if count == 1 else f"{count} {noun}s of {service}"
