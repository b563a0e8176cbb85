"""Descriptions and checks of settings, written beside their types: `Annotated[int, Description("…")]`.

The settings page, `remuda config show` and the messages for invalid values are generated from them. A check returns why
a value is invalid, with the remedy, or None.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_network
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

from remuda.http.server.server import ListenAddress
from remuda.identity.kinds.factors import SecondFactorPolicy
from remuda.kernel.errors import Invalid
from remuda.kernel.ids import is_id
from remuda.outbound.addresses import read_name_server

Problem = str | None
"""Why a value is invalid, with the remedy after a colon; None if it is valid."""


@dataclass(frozen=True, slots=True)
class Description:
    """Description of a setting, and the check of its value beyond its type."""

    text: str
    check: Callable[[Any], Problem] | None = None
    """Called with the value; for a list, with each item."""
    shown: str = ""
    """Text for a default that depends on something."""
    needs_one: bool = False
    """Whether a list must not be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting."""

    path: tuple[str, ...]
    type: Any
    about: Description
    default: Any

    @property
    def name(self) -> str:
        """Name in files and messages: `identity.issuer`."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """Name in the environment: `REMUDA_IDENTITY__ISSUER`."""
        return "REMUDA_" + "__".join(self.path).upper()


class Section:
    """Base of a table of the file that contains settings."""

    __slots__ = ()


def settings_of(section: Any, above: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Yield every setting of a section and its subsections, in the order of definition."""
    annotations = get_type_hints(section, include_extras=True)
    for field in dataclasses.fields(section):
        path, annotation = (*above, field.name), annotations[field.name]
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from settings_of(annotation, path)
            continue
        (about,) = annotation.__metadata__
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        yield Setting(path=path, type=annotation.__origin__, about=about, default=default)


_EMAIL = re.compile(r"[^@\sA-Z]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LAST_VLAN = 4094
_ALL_PERCENT = 100
_NAME = re.compile(r"[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?")


def check_positive(number: int) -> Problem:
    return None if number > 0 else "is not positive: write a whole number of at least 1"


def check_not_zero(duration: timedelta) -> Problem:
    return None if duration else "is zero: write a duration of at least 1s"


def check_listen_address(text: str) -> Problem:
    """Reject a text that is not HOST:PORT; an empty text means that nothing listens."""
    try:
        if text:
            ListenAddress.parse(text, field="")
    except Invalid as error:
        return error.message.strip(" .")
    return None


def check_network(text: str) -> Problem:
    try:
        ip_network(text)
    except ValueError:
        return "is not a network: write one such as 10.0.0.0/8, or an address such as 127.0.0.1"
    return None


def check_name_server(text: str) -> Problem:
    try:
        read_name_server(text)
    except ValueError:
        return "is not a name server: write its address, such as 9.9.9.9 or [::1]:5353"
    return None


def check_url(text: str) -> Problem:
    """Reject a text that is not a base URL; an empty text means that the URL is derived."""
    if not text or _is_plain_url(text):
        return None
    return "is not a plain URL: write one such as https://cloud.example.com, without a slash at its end"


def check_tls(text: str) -> Problem:
    return None if text in {"", "self-signed"} else "is not known: write self-signed, or leave it out"


def check_second_factor(text: str) -> Problem:
    choices = get_args(SecondFactorPolicy)
    return None if text in choices else f"is not known: write one of {', '.join(choices)}"


def check_origin(text: str) -> Problem:
    if text == "*" or (_is_plain_url(text) and not urlsplit(text).path):
        return None
    return "is not an origin: write one such as https://console.example.com, or * for all"


def check_email(text: str) -> Problem:
    """Reject a text that cannot be the address of a local account."""
    if _EMAIL.fullmatch(text):
        return None
    return "is not an e-mail address in lower case: write one such as admin@example.com"


def check_name(text: str) -> Problem:
    if _NAME.fullmatch(text):
        return None
    return "is not a name: write up to 63 letters, digits, dashes, dots and underscores"


def check_provider_type(text: str) -> Problem:
    if text in {"custom", "google", "microsoft"}:
        return None
    return "is not a type of provider: write google, microsoft, or custom for any other OpenID Connect provider"


def check_organization(text: str) -> Problem:
    return None if is_id(text) else "is not the id of an organization: write the one that the API shows, not its name"


def check_uuid(text: str) -> Problem:
    return None if _UUID.fullmatch(text) else "is not a UUID: write one in lower case, with its four dashes"


def check_percentage(number: int) -> Problem:
    return None if 0 <= number <= _ALL_PERCENT else "is not a percentage: write a whole number from 0 to 100"


def check_vlan(number: int) -> Problem:
    return None if 1 <= number <= _LAST_VLAN else f"is not a VLAN: write a whole number from 1 to {_LAST_VLAN}"


def check_gpu_vendor(text: str) -> Problem:
    return None if text in {"NVIDIA", "AMD"} else "is not a vendor of GPUs: write NVIDIA or AMD"


def _is_plain_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_complete = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_complete and not (parts.query or parts.fragment or "@" in parts.netloc or text.endswith("/"))
