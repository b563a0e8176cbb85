"""Commands ``remuda security-group``, and rules as users write them.

A rule has a direction, a protocol, and optionally ports and an IPv4 prefix: `ingress tcp 22 0.0.0.0/0` allows SSH from
anywhere, `egress any` allows all outgoing traffic.
"""

import re
from collections.abc import Sequence
from typing import Annotated, get_args

import msgspec
from cyclopts import Parameter

from remuda.cli.crud import (
    create_resource,
    delete_resource,
    find,
    find_id,
    list_resources,
    naming_users,
    show_resource,
    update_resource,
    wait_provisioned,
)
from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.options import (
    NEW_METADATA,
    NO_METADATA,
    NO_WAIT,
    Many,
    MetadataOptions,
    NewMetadataOptions,
    Output,
    WaitOptions,
    Watch,
    Yes,
)
from remuda.cli.resources import NETWORK, SECURITY_GROUP, rule_text
from remuda.kernel.errors import Invalid
from remuda.region.kinds.securitygroups import Direction, Protocol
from remuda.region.securitygroups.schema import (
    RuleWire,
    SecurityGroupCreate,
    SecurityGroupCreateSpec,
    SecurityGroupRead,
    SecurityGroupSpecWire,
    SecurityGroupUpdate,
)
from remuda.resources.ipv4 import find_prefix, hinted

_WITH_PORTS = ("tcp", "udp")
_MAX_PORT = 65535
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_RULE = (
    'Allow this traffic, such as "ingress tcp 8000-8080 10.0.0.0/8": ingress or egress; any, icmp, tcp, udp or vrrp; '
    "optionally a port or a range of ports, and an IPv4 prefix. Repeat it for more rules."
)
Allow = Annotated[tuple[str, ...], Parameter(help=_RULE, show_default=False)]


async def list(  # noqa: A001  the command's name
    *, network: str | None = None, watch: Watch = False, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """List the security groups of the project.

    Example::

        remuda security-group list --network lab

    :param network: List only the groups of this network, by name or id.
    """
    async with scope.open() as api:
        more = {} if network is None else {"networkID": await find_id(api, NETWORK, network)}
        await list_resources(api, SECURITY_GROUP, output, watch=watch, more=more)


async def show(group: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Show a security group with its rules.

    Example::

        remuda security-group show web

    :param group: Name or id of the security group.
    """
    async with scope.open() as api:
        await show_resource(api, SECURITY_GROUP, await find(api, SECURITY_GROUP, group), output)


async def create(
    name: str,
    /,
    *,
    network: str,
    allow: Allow = (),
    metadata: NewMetadataOptions = NEW_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Create a security group.

    Example::

        remuda security-group create web --network lab --allow "ingress tcp 443"

    :param name: Name of the security group.
    :param network: Create the group for instances on this network, by name or id.
    """
    rules = tuple(map(parse_rule, allow))
    async with scope.open() as api:
        spec = SecurityGroupCreateSpec(network_id=await find_id(api, NETWORK, network), rules=rules)
        body = SecurityGroupCreate(metadata=metadata.metadata(name), spec=spec)
        created = await create_resource(api, SECURITY_GROUP, body, wait=wait, duplicates=metadata.allow_duplicate)
        await show_resource(api, SECURITY_GROUP, created, output)


async def update(
    group: str,
    /,
    *,
    allow: Allow = (),
    remove_rule: Many = (),
    metadata: MetadataOptions = NO_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    r"""Update the rules of a security group.

    Example::

        remuda security-group update web --allow "ingress tcp 443" \
            --remove-rule "ingress tcp 80"

    :param group: Name or id of the security group.
    :param remove_rule: Remove this rule, as show prints it. Repeat it for more rules.
    """
    added = tuple(map(parse_rule, allow))
    removed = tuple(parse_rule(text, "--remove-rule") for text in remove_rule)

    def body(found: SecurityGroupRead) -> SecurityGroupUpdate:
        spec = SecurityGroupSpecWire(rules=_updated(found.spec.rules, added, removed))
        return SecurityGroupUpdate(metadata=metadata.metadata(found.metadata.name, found.metadata), spec=spec)

    async with scope.open() as api:
        updated = await update_resource(api, SECURITY_GROUP, group, body)
        updated = await wait_provisioned(api, SECURITY_GROUP, updated, wait=wait)
        await show_resource(api, SECURITY_GROUP, updated, output)


async def delete(
    group: str, /, *, yes: Yes = False, wait: WaitOptions = NO_WAIT, scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Delete a security group that no instance uses.

    Example::

        remuda security-group delete web --yes

    :param group: Name or id of the security group.
    """
    async with scope.open() as api, naming_users(api, SECURITY_GROUP, group):
        await delete_resource(api, SECURITY_GROUP, group, yes=yes, wait=wait)


def _updated(rules: Sequence[RuleWire], added: Sequence[RuleWire], removed: Sequence[RuleWire]) -> tuple[RuleWire, ...]:
    present, gone = {rule_text(rule) for rule in rules}, {rule_text(rule) for rule in removed}
    for text in gone - present:
        remedy = f"the rules are {'; '.join(sorted(present)) or 'none'}"
        raise Invalid("--remove-rule", f"{text!r} is not a rule of this group", remedy=remedy)
    kept = [rule for rule in rules if rule_text(rule) not in gone]
    return (*kept, *(rule for rule in added if rule_text(rule) not in present))


def parse_rule(text: str, option: str = "--allow") -> RuleWire:
    """Return a rule from its text, or raise Invalid."""
    direction, protocol, *rest = [*text.split(), "", ""][: max(2, len(text.split()))]
    if direction not in get_args(Direction):
        raise _invalid(option, text, "does not begin with ingress or egress")
    if protocol not in get_args(Protocol):
        raise _invalid(option, text, f"has none of the protocols {', '.join(get_args(Protocol))}")
    fields: dict[str, object] = {"direction": direction, "protocol": protocol}
    if rest and (ports := _PORTS.fullmatch(rest[0])):
        rest = rest[1:]
        fields["port"] = int(ports[1])
        if ports[2]:
            fields["portMax"] = int(ports[2])
    if rest and ("." in rest[0] or "/" in rest[0]):
        fields["prefix"] = rest.pop(0)
    if rest:
        raise _invalid(option, text, f"ends with {rest[0]}, which is neither ports nor a prefix")
    if problem := _problem(fields):
        raise _invalid(option, text, problem)
    return msgspec.convert(fields, RuleWire)


def _problem(fields: dict[str, object]) -> str:
    """Return what the API would reject in a rule, or nothing."""
    ports = [int(str(fields[name])) for name in ("port", "portMax") if name in fields]
    prefix = str(fields.get("prefix", ""))
    if ports and fields["protocol"] not in _WITH_PORTS:
        return f"has ports, which only {' and '.join(_WITH_PORTS)} have"
    if any(not 1 <= port <= _MAX_PORT for port in ports):
        return f"has a port that is not from 1 to {_MAX_PORT}"
    if len(ports) > 1 and ports[0] >= ports[1]:
        return f"has the ports {ports[0]}-{ports[1]}, of which the first is not the lower one"
    if prefix and find_prefix(prefix) is None:
        return hinted(f"has {prefix}, which is not an IPv4 prefix", prefix)
    return ""


def _invalid(option: str, text: str, problem: str) -> Invalid:
    return Invalid(option, f"{text!r} {problem}", remedy='write it as "ingress tcp 22 0.0.0.0/0"')
