"""Security groups as they are stored. A network owns its groups, and servers reference them."""

from typing import Literal

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.resources.conventions import PROJECT, LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct

Direction = Literal["ingress", "egress"]
"""Direction as the server sees it."""

Protocol = Literal["any", "icmp", "tcp", "udp", "vrrp"]


class PortRange(StoredStruct, frozen=True):
    """Range of ports, both ends included."""

    start: int
    end: int


class RulePort(StoredStruct, frozen=True):
    """One port or a range."""

    number: int | None = None
    range: PortRange | None = None


class Rule(StoredStruct, frozen=True):
    """Permitted traffic. Without a port, all ports; without a CIDR, all addresses."""

    direction: Direction
    protocol: Protocol
    port: RulePort | None = None
    cidr: str = ""


class SecurityGroupSpec(StoredStruct, frozen=True):
    """Desired state of a security group."""

    rules: tuple[Rule, ...] = ()
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class SecurityGroup(Resource, frozen=True):
    """Labels name its region, identity and network."""

    spec: SecurityGroupSpec = SecurityGroupSpec()
    status: LifecycleStatus = LifecycleStatus()


SECURITY_GROUP = Kind(
    type=SecurityGroup,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="securitygroups",
    counted_in=PROJECT,
    columns={"Status": '.status.conditions[?(@.type=="Available")].reason'},
)
