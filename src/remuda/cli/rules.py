"""Rules of security groups as people write them: which way, what, which ports, and from or to where.

`ingress tcp 22 0.0.0.0/0` lets SSH in from anywhere, `egress any` everything out. Ports and prefix may be left out.
"""

import re
from collections.abc import Mapping
from typing import Any

from remuda.kernel.errors import Invalid
from remuda.resources.ipv4 import hinted, read_prefix

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
    if "prefix" in rule and read_prefix(rule["prefix"]) is None:
        return hinted(f"names {rule['prefix']}, which is no IPv4 prefix", rule["prefix"])
    return ""


def _wrong(option: str, text: str, problem: str) -> Invalid:
    return Invalid(option, f"{text!r} {problem}", remedy='write it as "ingress tcp 22 0.0.0.0/0"')
