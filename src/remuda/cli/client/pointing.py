"""Which argument of a command a fault of a request's body comes from: commands have no JSON pointers."""

import re
from collections.abc import Mapping, Sequence

import msgspec

_NAME = "/metadata/name"
_OPTIONS: Mapping[str, str] = {
    "/metadata/description": "--description",
    "/metadata/tags": "--tag",
    "/metadata/tags/[0-9]+/name": "The name of a --tag",
    "/metadata/tags/[0-9]+/value": "The value of a --tag",
    "/spec/rules(/.*)?": "--allow",
    "/spec/dnsNameservers(/.*)?": "--dns",
    "/spec/networking/securityGroups(/.*)?": "--security-group",
    "/spec/networking/allowedSourceAddresses(/.*)?": "--source",
    "/spec/userData": "--user-data",
    "/spec/publicKey": "--key",
    "/spec/uri": "--url",
    "/spec/os/distro": "--distro",
    "/spec/os/family": "--family",
    "/spec/os/version": "--release",
}


def in_options(problems: Sequence[tuple[str, str]], body: bytes) -> str:
    """Return what is wrong with a body in words of the command line, or nothing if that has none for all of it."""
    told = [_about_name(body) if pointer == _NAME else _told(pointer, reason) for pointer, reason in problems]
    return "; ".join(dict.fromkeys(told)) if all(told) else ""


def _about_name(body: bytes) -> str:
    name = msgspec.json.decode(body)["metadata"]["name"]
    return (
        f"NAME {name!r} cannot be: write 1 to 63 letters, digits, '_', '.' and '-', beginning and ending with a letter "
        "or digit"
    )


def _told(pointer: str, reason: str) -> str:
    option = next((option for form, option in _OPTIONS.items() if re.fullmatch(form, pointer)), "")
    return f"{option} {reason}" if option else ""
