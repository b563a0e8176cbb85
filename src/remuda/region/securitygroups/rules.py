"""The rules of security groups, as pure functions: what may be asked, what is stored of it, how it reads.

A rule is stored as it was sent, however often it is there; only the provider is told each once. A last port without a
first one, or beside a protocol that has no ports, says nothing, and is dropped: clients have always sent it.
"""

from datetime import datetime

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.errors import Malformed
from remuda.providers.contract.common import Handle, group_name
from remuda.providers.contract.networks import CloudRule
from remuda.providers.contract.networks import CloudSecurityGroup as CloudGroup
from remuda.region.kinds.networks import NETWORK, Identity, Network
from remuda.region.kinds.securitygroups import PortRange, Rule, RulePort, SecurityGroup, SecurityGroupSpec
from remuda.region.networks.rules import tenancy_of
from remuda.region.securitygroups.schema import (
    GroupCreate,
    GroupRead,
    GroupSpecWire,
    GroupStatusRead,
    GroupUpdate,
    RuleWire,
)
from remuda.resources import conventions as labels
from remuda.resources import conventions as regional
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.resources.ipv4 import parse_prefix
from remuda.resources.metadata import (
    changed_metadata,
    check_tags,
    new_metadata,
    read_project_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.tags import own_tags, replaced_tags

_ANYWHERE = "0.0.0.0/0"
_WITH_PORTS = frozenset({"tcp", "udp"})
_OF_NETWORK = (labels.ORGANIZATION, labels.PROJECT, regional.REGION, regional.IDENTITY)


def new_group(group: str, wanted: GroupCreate, network: Network, by: Principal) -> SecurityGroup:
    """Return a security group as it is stored, or raise what is wrong with it. Where it is, its network says."""
    rules = _stored_rules(wanted.spec)
    check_tags(wanted.metadata.tags)
    where = {label: network.metadata.labels[label] for label in _OF_NETWORK}
    where |= {regional.NETWORK: network.name, regional.API_VERSION: regional.API_V2}
    metadata = new_metadata(group, wanted.metadata, by, labels=where, finalizers=(CONTROLLER_FINALIZER,))
    return SecurityGroup(
        metadata=replace(metadata, owner_references=(NETWORK.owner(network),)),
        spec=SecurityGroupSpec(rules=rules, tags=own_tags(stored_tags(wanted.metadata), by)),
    )


def changed_group(group: SecurityGroup, wanted: GroupUpdate, by: Principal, now: datetime) -> SecurityGroup:
    """Return a security group with everything replaced that a client may change, or raise what is wrong with that."""
    rules = _stored_rules(wanted.spec)
    check_tags(wanted.metadata.tags)
    tags = replaced_tags(group.spec.tags, stored_tags(wanted.metadata), by)
    return replace(
        group,
        metadata=changed_metadata(group.metadata, wanted.metadata, by.subject, now),
        spec=replace(group.spec, rules=rules, tags=tags),
    )


def _stored_rules(wanted: GroupSpecWire) -> tuple[Rule, ...]:
    return tuple(_stored_rule(rule) for rule in wanted.rules)


def _stored_rule(wanted: RuleWire) -> Rule:
    return Rule(
        direction=wanted.direction,
        protocol=wanted.protocol,
        port=_stored_port(wanted),
        cidr="" if wanted.prefix is None else str(parse_prefix(wanted.prefix, "unable to parse prefix")),
    )


def _stored_port(wanted: RuleWire) -> RulePort | None:
    if wanted.port is None:
        return None
    if wanted.protocol not in _WITH_PORTS:
        raise Malformed("rule specified ports for a layer 3 protocol")
    if wanted.port_max is None:
        return RulePort(number=wanted.port)
    if wanted.port >= wanted.port_max:
        raise Malformed("rule must have a range where start < end")
    return RulePort(range=PortRange(start=wanted.port, end=wanted.port_max))


def handle_of(group: SecurityGroup, identity: Identity) -> Handle:
    """Return what a security group is called at its provider."""
    return Handle(tenancy_of(identity.metadata), group_name(group.name, group.uid))


def to_cloud(group: SecurityGroup, identity: Identity) -> CloudGroup:
    """Return what a provider is to have of a security group."""
    wanted = dict.fromkeys(_cloud_rule(rule) for rule in group.spec.rules)
    return CloudGroup(handle=handle_of(group, identity), rules=tuple(wanted))


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
    """Return the first and the last port of a rule; of all of them, none."""
    if rule.port is None:
        return None, None
    if rule.port.range is not None:
        return rule.port.range.start, rule.port.range.end
    return rule.port.number, rule.port.number


def writable_group(group: SecurityGroup) -> GroupUpdate:
    """Return what a client may change of a security group, as it is now."""
    spec = group.spec
    return GroupUpdate(
        metadata=writable_metadata(group.metadata, spec.tags),
        spec=GroupSpecWire(rules=tuple(_wire_rule(rule) for rule in spec.rules)),
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


def read_group(group: SecurityGroup) -> GroupRead:
    """Return a security group as clients read it."""
    return GroupRead(
        metadata=read_project_metadata(group.metadata, group.spec.tags, group.status.conditions),
        spec=writable_group(group).spec,
        status=GroupStatusRead(region_id=regional.region_of(group), network_id=regional.network_of(group)),
    )


GROUP_VIEW = etag_view(read_group, writable_group)
"""A security group as JSON, with its tag."""
