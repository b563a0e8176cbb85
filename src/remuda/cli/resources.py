"""What commands speak of: where each noun is in the API, and what a table shows of it.

Rules of security groups as people write them: which way, what, which ports, and from or to where.

`ingress tcp 22 0.0.0.0/0` lets SSH in from anywhere, `egress any` everything out. Ports and prefix may be left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from remuda.cli.client.session import Service
from remuda.cli.output import Columns
from remuda.kernel.errors import Invalid
from remuda.resources.ipv4 import find_prefix, hinted

_DIRECTIONS = ("ingress", "egress")
_PROTOCOLS = ("any", "icmp", "tcp", "udp", "vrrp")
_WITH_PORTS = ("tcp", "udp")
_LAST_PORT = 65535
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def parse_rule(text: str, option: str = "--allow") -> dict[str, Any]:
    """Return a rule as the API has it."""
    direction, protocol, *rest = [*text.split(), "", ""][: max(2, len(text.split()))]
    if direction not in _DIRECTIONS:
        raise _wrong(option, text, "begins with neither ingress nor egress")
    if protocol not in _PROTOCOLS:
        raise _wrong(option, text, f"names none of the protocols {', '.join(_PROTOCOLS)}")
    rule: dict[str, Any] = {"direction": direction, "protocol": protocol}
    if rest and (ports := _PORTS.fullmatch(rest[0])):
        rest = rest[1:]
        rule["port"] = int(ports[1])
        if ports[2]:
            rule["portMax"] = int(ports[2])
    if rest and ("." in rest[0] or "/" in rest[0]):
        rule["prefix"] = rest.pop(0)
    if rest:
        raise _wrong(option, text, f"ends with {rest[0]}, which is neither ports nor a prefix")
    if problem := _problem(rule):
        raise _wrong(option, text, problem)
    return rule


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return a rule as people write it."""
    ports = str(rule.get("port") or "") + (f"-{rule['portMax']}" if rule.get("portMax") else "")
    return " ".join(filter(None, (rule["direction"], rule["protocol"], ports, rule.get("prefix") or "")))


def _problem(rule: Mapping[str, Any]) -> str:
    """Return what the API would refuse in words that its clients know, or nothing."""
    ports = [rule[name] for name in ("port", "portMax") if name in rule]
    if ports and rule["protocol"] not in _WITH_PORTS:
        return f"names ports, which only {' and '.join(_WITH_PORTS)} have"
    if any(not 1 <= port <= _LAST_PORT for port in ports):
        return f"names a port that is not from 1 to {_LAST_PORT}"
    if len(ports) > 1 and ports[0] >= ports[1]:
        return f"names the ports {ports[0]}-{ports[1]}, of which the first is not the lower one"
    if "prefix" in rule and find_prefix(rule["prefix"]) is None:
        return hinted(f"names {rule['prefix']}, which is no IPv4 prefix", rule["prefix"])
    return ""


def _wrong(option: str, text: str, problem: str) -> Invalid:
    return Invalid(option, f"{text!r} {problem}", remedy='write it as "ingress tcp 22 0.0.0.0/0"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A sort of thing."""

    word: str
    service: Service
    path: str
    columns: Columns
    more: Columns = field(default_factory=dict)
    """What is shown of one alone besides."""
    remedy: str = "show it for more"
    """What to do about one that has failed."""
    refers: Sequence["Noun"] = ()
    """What its columns name by id."""

    @property
    def details(self) -> Columns:
        """What is shown of one alone."""
        return {**self.columns, **self.more}

    def look(self, name: str) -> str:
        """Return the command that shows one."""
        return f"remuda {self.word.replace(' ', '-')} show {name}"


def _at(thing: Any, *keys: str) -> str:
    for key in keys:
        thing = thing.get(key) if isinstance(thing, Mapping) else None
    if thing is None:
        return ""
    if isinstance(thing, bool):
        return "yes" if thing else "no"
    if isinstance(thing, Sequence) and not isinstance(thing, str):
        return ", ".join(map(str, thing))
    return str(thing)


def _name(thing: Any) -> str:
    return _at(thing, "metadata", "name")


def _id(thing: Any) -> str:
    return _at(thing, "metadata", "id")


def _status(thing: Any) -> str:
    return _at(thing, "metadata", "provisioningStatus")


def _why(thing: Any) -> str:
    message = _at(thing, "metadata", "provisioningStatusDetail", "message")
    return "" if message == _status(thing) else message


def _health(thing: Any) -> str:
    status, message = (_at(thing, "metadata", *keys) for keys in (["healthStatus"], ["healthStatusDetail", "message"]))
    if status == "healthy":
        return status
    return "" if status == "unknown" else f"{status}: {message}" if message not in {"", status} else status


def _made(thing: Any) -> str:
    text = _at(thing, "metadata", "creationTime")
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}" if text else ""


def _tags(thing: Any) -> str:
    return ", ".join(f"{tag['name']}={tag['value']}" for tag in thing["metadata"].get("tags", ()))


_ABOUT: Columns = {
    "DESCRIPTION": lambda thing: _at(thing, "metadata", "description"),
    "TAGS": _tags,
    "WHY": _why,
    "HEALTH": _health,
    "MADE BY": lambda thing: _at(thing, "metadata", "createdBy"),
}


def _protection(thing: Any) -> str:
    found = thing["spec"].get("protection") or {}
    words = {"deletion": "from deletion", "plan": "from changes without a plan"}
    return ", ".join(words[name] for name in words if found.get(name))


REGION = Noun(
    word="region",
    service="region",
    path="/api/v2/regions",
    columns={"NAME": _name, "TYPE": lambda thing: _at(thing, "spec", "type"), "ID": _id},
    more={"CAPABILITIES": lambda thing: _at(thing, "spec", "features", "capabilities")},
)
"""Regions."""
NETWORK = Noun(
    word="network",
    service="region",
    path="/api/v2/networks",
    columns={
        "NAME": _name,
        "STATUS": _status,
        "PREFIX": lambda thing: _at(thing, "status", "prefix"),
        "REGION": lambda thing: _at(thing, "status", "regionId"),
        "MADE": _made,
        "ID": _id,
    },
    more={"DNS": lambda thing: _at(thing, "spec", "dnsNameservers"), **_ABOUT},
    refers=(REGION,),
)
"""Networks."""
SECURITY_GROUP = Noun(
    word="security group",
    service="region",
    path="/api/v2/securitygroups",
    columns={
        "NAME": _name,
        "STATUS": _status,
        "RULES": lambda thing: str(len(thing["spec"].get("rules", ()))),
        "NETWORK": lambda thing: _at(thing, "status", "networkId"),
        "MADE": _made,
        "ID": _id,
    },
    more={"ALLOWS": lambda thing: "; ".join(map(rule_text, thing["spec"].get("rules", ()))), **_ABOUT},
    refers=(NETWORK,),
)
"""Security groups."""
SSH_CA = Noun(
    word="SSH certificate authority",
    service="region",
    path="/api/v2/sshcertificateauthorities",
    columns={"NAME": _name, "STATUS": _status, "MADE": _made, "ID": _id},
    more={"PUBLIC KEY": lambda thing: _at(thing, "spec", "publicKey"), **_ABOUT},
)
"""SSH certificate authorities."""
INSTANCE = Noun(
    word="instance",
    service="compute",
    path="/api/v2/instances",
    columns={
        "NAME": _name,
        "STATUS": _status,
        "POWER": lambda thing: _at(thing, "status", "powerState"),
        "PRIVATE IP": lambda thing: _at(thing, "status", "privateIP"),
        "PUBLIC IP": lambda thing: _at(thing, "status", "publicIP"),
        "NETWORK": lambda thing: _at(thing, "status", "networkId"),
        "MADE": _made,
        "ID": _id,
    },
    more={
        "MAC": lambda thing: _at(thing, "status", "macAddress"),
        "FLAVOR": lambda thing: _at(thing, "spec", "flavorId"),
        "IMAGE": lambda thing: _at(thing, "spec", "imageId"),
        "REGION": lambda thing: _at(thing, "status", "regionId"),
        "SECURITY GROUPS": lambda thing: _at(thing, "spec", "networking", "securityGroups"),
        "SSH CA": lambda thing: _at(thing, "spec", "sshCertificateAuthorityId"),
        "MAY ALSO SEND FROM": lambda thing: _at(thing, "spec", "networking", "allowedSourceAddresses"),
        "PROTECTED": _protection,
        **_ABOUT,
    },
    remedy="remuda instance explain {name} says what can be done",
    refers=(NETWORK, REGION, SECURITY_GROUP, SSH_CA),
)
"""Instances."""


def _gpu(thing: Any) -> str:
    gpu = thing["spec"].get("gpu")
    return "" if gpu is None else f"{gpu['physicalCount']} x {gpu['model']}"


def _software(thing: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in (thing["spec"].get("softwareVersions") or {}).items())


FLAVOR = Noun(
    word="flavor",
    service="region",
    path="/api/v2/regions/{region}/flavors",
    columns={
        "NAME": _name,
        "CPUS": lambda thing: _at(thing, "spec", "cpus"),
        "MEMORY": lambda thing: f"{thing['spec']['memory']} GiB",
        "DISK": lambda thing: f"{thing['spec']['disk']} GB",
        "GPU": _gpu,
        "FREE": lambda thing: _at(thing, "spec", "free"),
        "ID": _id,
    },
    more={
        "ARCHITECTURE": lambda thing: _at(thing, "spec", "architecture"),
        "BARE METAL": lambda thing: _at(thing, "spec", "baremetal"),
    },
)
"""Flavors of a region."""
IMAGE = Noun(
    word="image",
    service="region",
    path="/api/v2/regions/{region}/images",
    columns={
        "NAME": _name,
        "STATE": lambda thing: _at(thing, "status", "state"),
        "SYSTEM": lambda thing: f"{thing['spec']['os']['distro']} {thing['spec']['os']['version']}",
        "SIZE": lambda thing: f"{thing['spec']['sizeGiB']} GiB",
        "MADE": _made,
        "ID": _id,
    },
    more={
        "ARCHITECTURE": lambda thing: _at(thing, "spec", "architecture"),
        "RUNS ON": lambda thing: _at(thing, "spec", "virtualization"),
        "SOFTWARE": _software,
        "TAGS": _tags,
    },
)
"""Images of a region."""
