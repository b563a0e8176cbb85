"""The addresses of an instance: those of its server, and what they were where a server made again has others.

Such a server may have none for a while. What the instance had is remembered until its server has another.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from remuda.compute.kinds.instances import Addresses, ComputeInstance, InstanceStatus
from remuda.compute.seen import ServerSeen

_NOWHERE = Addresses()


def with_addresses(instance: ComputeInstance, server: ServerSeen) -> ComputeInstance:
    """Return an instance with the addresses of its server."""
    before, now = _last_of(instance.status), _shown_by(server)
    if instance.status.had is None and before == now:
        return instance
    had = Addresses(
        private_ip="" if now.private_ip else before.private_ip,
        public_ip="" if now.public_ip or not instance.spec.wants_public_ip else before.public_ip,
        mac_address="" if now.mac_address else before.mac_address,
    )
    status = replace(instance.status, had=None if had == _NOWHERE else had, **msgspec.structs.asdict(now))
    return replace(instance, status=status)


def moved(before: InstanceStatus, after: InstanceStatus) -> Mapping[str, Mapping[str, str]]:
    """Return what each address was and is now, of those that have become others."""
    last, now = _last_of(before), _last_of(after)
    each = {
        "privateIP": (last.private_ip, now.private_ip),
        "macAddress": (last.mac_address, now.mac_address),
        "publicIP": (last.public_ip, now.public_ip),
    }
    return {name: {"was": was, "now": is_} for name, (was, is_) in each.items() if was and is_ and was != is_}


def _last_of(status: InstanceStatus) -> Addresses:
    """Return the last addresses that are known of an instance."""
    had = status.had or _NOWHERE
    return Addresses(
        private_ip=status.private_ip or had.private_ip,
        public_ip=status.public_ip or had.public_ip,
        mac_address=status.mac_address or had.mac_address,
    )


def _shown_by(server: ServerSeen) -> Addresses:
    return Addresses(private_ip=server.private_ip, public_ip=server.public_ip, mac_address=server.mac_address)
