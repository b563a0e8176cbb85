"""What a plan is made from: an instance, as it was wanted before and as it is wanted now."""

from dataclasses import dataclass

import msgspec

from remuda.compute.kinds.instances import Protection
from remuda.compute.seen import ServerFacts
from remuda.resources.schema import FlavorRead, ImageRead


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The instance, with what is known of it: that is told, and decides nothing."""

    id: str
    uid: str
    name: str
    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""
    runs: bool = True
    """As far as anybody knows: of one that does not, nothing that runs can be lost or go on."""
    is_made_anew: bool = False
    """Its server is being made anew: the disk that it has, and what is on it, does not outlast that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is wanted, on one side of a change."""

    facts: ServerFacts
    writable: msgspec.Struct
    """All that a client may change, as its ETag covers it."""
    protection: Protection
    tags: tuple[tuple[str, str], ...] = ()
    """The instance's own: its server has others."""
    gpus: int = 0
    """How many physical ones it is charged for."""
    flavor: FlavorRead | None = None
    """None if it is not on offer any more."""
    image: ImageRead | None = None
    """Likewise."""
