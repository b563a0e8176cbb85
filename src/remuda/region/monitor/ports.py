"""Whether a port is as its server wants it, as far as the two alone tell: a call that came late may have put it back.

No poll tells of that, for a port has no version. The search for orphans reads all ports and whose they are anyway, so
it is noticed there.
"""

from remuda.providers.contract.common import id_in
from remuda.providers.contract.servers import Port
from remuda.region.kinds.servers import Server


def is_as_wanted(port: Port, server: Server) -> bool:
    """Tell whether a port has the groups, the sources and the sort of address that its server is to have."""
    spec, there = server.spec, port.spec
    sources = {pair.cidr for each in spec.networks for pair in each.allowed_address_pairs}
    return (
        there.is_public == spec.wants_public_ip
        and {*map(id_in, there.groups)} == {group.id for group in spec.security_groups}
        and {*there.sources} == sources
    )
