"""Rules of security groups: validation, stored objects, cloud specs and responses.

Rules are stored as they were sent, with duplicates; the provider gets each once. A last port without a first one, or
with a protocol that has no ports, is ignored, because existing clients send it.
"""

from datetime import datetime

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.errors import Malformed
from remuda.providers.contract.common import Handle, group_name
from remuda.providers.contract.networks import CloudRule
from remuda.providers.contract.networks import CloudSecurityGroup as CloudGroup
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.securitygroups import PortRange, Rule, RulePort, SecurityGroup, SecurityGroupSpec
from remuda.region.networks.rules import child_metadata, tenancy_of
from remuda.region.securitygroups.schema import (
    RuleWire,
    SecurityGroupCreate,
    SecurityGroupRead,
    SecurityGroupSpecWire,
    SecurityGroupStatusRead,
    SecurityGroupUpdate,
)
from remuda.resources.conventions import network_of, region_of
from remuda.resources.ipv4 import parse_prefix
from remuda.resources.metadata import changed_metadata, new_tags, read_project_metadata, updated_tags, writable_metadata

_ANYWHERE = "0.0.0.0/0"
_PORT_PROTOCOLS = frozenset({"tcp", "udp"})


def new_group(group: str, requested: SecurityGroupCreate, network: Network, by: Principal) -> SecurityGroup:
    """Return the object of a new security group in the project and region of its network, or raise an error."""
    rules = _stored_rules(requested.spec)
    return SecurityGroup(
        metadata=child_metadata(group, requested.metadata, network, by),
        spec=SecurityGroupSpec(rules=rules, tags=new_tags(requested.metadata, by)),
    )


def changed_group(group: SecurityGroup, requested: SecurityGroupUpdate, by: Principal, now: datetime) -> SecurityGroup:
    """Return a security group with its writable fields replaced, or raise an error."""
    rules = _stored_rules(requested.spec)
    tags = updated_tags(group.spec.tags, requested.metadata, by)
    return replace(
        group,
        metadata=changed_metadata(group.metadata, requested.metadata, by, now),
        spec=replace(group.spec, rules=rules, tags=tags),
    )


def _stored_rules(requested: SecurityGroupSpecWire) -> tuple[Rule, ...]:
    return tuple(_stored_rule(rule) for rule in requested.rules)


def _stored_rule(requested: RuleWire) -> Rule:
    return Rule(
        direction=requested.direction,
        protocol=requested.protocol,
        port=_stored_port(requested),
        cidr="" if requested.prefix is None else str(parse_prefix(requested.prefix, "unable to parse prefix")),
    )


def _stored_port(requested: RuleWire) -> RulePort | None:
    if requested.port is None:
        return None
    if requested.protocol not in _PORT_PROTOCOLS:
        raise Malformed("rule specified ports for a layer 3 protocol")
    if requested.port_max is None:
        return RulePort(number=requested.port)
    if requested.port >= requested.port_max:
        raise Malformed("rule must have a range where start < end")
    return RulePort(range=PortRange(start=requested.port, end=requested.port_max))


def group_handle(group: SecurityGroup, identity: Identity) -> Handle:
    return Handle(tenancy_of(identity.metadata), group_name(group.name, group.uid))


def cloud_group(group: SecurityGroup, identity: Identity) -> CloudGroup:
    """Return the desired state of a security group at its provider."""
    requested = dict.fromkeys(_cloud_rule(rule) for rule in group.spec.rules)
    return CloudGroup(handle=group_handle(group, identity), rules=tuple(requested))


def _cloud_rule(rule: Rule) -> CloudRule:
    first, last = _ports(rule)
    return CloudRule(
        direction=rule.direction,
        protocol=rule.protocol,
        first_port=first,
        last_port=last,
        prefix=rule.cidr or _ANYWHERE,
    )


def _ports(rule: Rule) -> tuple[int | None, int | None]:
    """Return the first and the last port of a rule; None if it is for all ports."""
    if rule.port is None:
        return None, None
    if rule.port.range is not None:
        return rule.port.range.start, rule.port.range.end
    return rule.port.number, rule.port.number


def writable_group(group: SecurityGroup) -> SecurityGroupUpdate:
    spec = group.spec
    return SecurityGroupUpdate(
        metadata=writable_metadata(group.metadata, spec.tags),
        spec=SecurityGroupSpecWire(rules=tuple(_wire_rule(rule) for rule in spec.rules)),
    )


def _wire_rule(rule: Rule) -> RuleWire:
    first, last = _ports(rule)
    return RuleWire(
        direction=rule.direction,
        protocol=rule.protocol,
        port=first,
        port_max=None if last == first else last,
        prefix=rule.cidr or None,
    )


def read_group(group: SecurityGroup) -> SecurityGroupRead:
    return SecurityGroupRead(
        metadata=read_project_metadata(group.metadata, group.spec.tags, group.status.conditions),
        spec=writable_group(group).spec,
        status=SecurityGroupStatusRead(region_id=region_of(group), network_id=network_of(group)),
    )


GROUP_VIEW = etag_view(read_group, writable_group)
