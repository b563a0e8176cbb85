"""Limits of the numbers of stored objects, from the configuration."""

from typing import Any

from remuda.compute.kinds import KINDS as COMPUTE_KINDS
from remuda.config.loader import Misconfigured
from remuda.config.schema import ServerConfig
from remuda.identity.kinds import KINDS as IDENTITY_KINDS
from remuda.kernel.text import nearest
from remuda.region.kinds import KINDS as REGION_KINDS
from remuda.store.kinds import Kind, ObjectLimits

_KINDS: tuple[Kind[Any], ...] = (*IDENTITY_KINDS, *REGION_KINDS, *COMPUTE_KINDS)


def object_limits(server: ServerConfig) -> ObjectLimits:
    return ObjectLimits(default=server.object_limit, of_kinds=server.object_limits)


def check_object_limits(server: ServerConfig) -> None:
    """Raise Misconfigured for a limit of a kind that has none."""
    limited = sorted(kind.plural for kind in _KINDS if kind.counted_in)
    for plural in server.object_limits:
        if plural not in limited:
            found = nearest(plural, limited)
            remedy = f"did you mean {found}?" if found else f"there are {', '.join(limited)}"
            raise Misconfigured((f"server.object_limits.{plural} is not a kind with such a limit: {remedy}",))
