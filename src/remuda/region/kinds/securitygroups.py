"""Security groups as they are stored. A group belongs to its network, and servers on it name it."""

from typing import Literal

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct

Direction = Literal["ingress", "egress"]
"""Which way, as the server sees it."""

Protocol = Literal["any", "icmp", "tcp", "udp", "vrrp"]
"""What may pass."""


class PortRange(StoredStruct, frozen=True):
    """Ports in a row, both ends included."""

    start: int
    end: int


class RulePort(StoredStruct, frozen=True):
    """One port, or several in a row."""

    number: int | None = None
    range: PortRange | None = None


class Rule(StoredStruct, frozen=True):
    """What may pass. Without a port, all of them; without a CIDR, from or to anywhere."""

    direction: Direction
    protocol: Protocol
    port: RulePort | None = None
    cidr: str = ""


class SecurityGroupSpec(StoredStruct, frozen=True):
    """What is wanted of a security group."""

    rules: tuple[Rule, ...] = ()
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class SecurityGroup(Resource, frozen=True):
    """A security group. Labels say of which region, identity and network."""

    spec: SecurityGroupSpec = SecurityGroupSpec()
    status: LifecycleStatus = LifecycleStatus()


SECURITY_GROUP = Kind(
    type=SecurityGroup,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="securitygroups",
    columns={"Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Security groups, found by their labels."""
