"""The servers room as its handlers are given it."""

from dataclasses import dataclass

from remuda.region.servers.service import Servers
from remuda.region.servers.verbs import Verbs


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRoom:
    """The room."""

    servers: Servers
    verbs: Verbs
