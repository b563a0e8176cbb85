"""The servers room as its handlers are given it."""

from dataclasses import dataclass

from remuda.region.servers.actions import Verbs
from remuda.region.servers.service import Servers


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRoom:
    """The room."""

    servers: Servers
    verbs: Verbs
