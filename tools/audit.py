"""Audit of the locked dependencies: known vulnerabilities, and what could not be checked.

`python -m tools.audit requirements.lock …` asks each vulnerability service of pip-audit for the packages that the ones
before had no data about. Every pin is checked, also one that this platform does not install. The exit code is 1 only
for a known vulnerability. Without data there is no finding, and no pass either: the last lines say so.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SERVICES = ("pypi", "osv")
"""Services of pip-audit: the advisories of the package index, and the Open Source Vulnerabilities database."""

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
_TIMEOUT_S = 10
_FEW = 5


@dataclass(frozen=True, order=True)
class Vulnerability:
    """A known vulnerability of a package."""

    package: str
    version: str
    id: str
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        remedy = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "without a fixed release"
        return f"{self.package} {self.version}: {self.id}, {remedy}"


@dataclass
class Audit:
    """Result of an audit."""

    pins: Mapping[str, str]
    """Versions by the name of the package."""
    vulnerabilities: set[Vulnerability] = field(default_factory=set)
    checked: set[str] = field(default_factory=set)
    causes: dict[str, str] = field(default_factory=dict)
    """Reasons for which a service had no data, by service."""

    @property
    def unchecked(self) -> Sequence[str]:
        return sorted(self.pins.keys() - self.checked)

    def lines(self) -> Iterator[str]:
        for each in sorted(self.vulnerabilities):
            yield f"AUDIT: VULNERABLE: {each}."
        if self.vulnerabilities:
            yield "AUDIT: FAILED: run make lock for a fixed release, or replace the package."
        if self.checked:
            yield f"AUDIT: {len(self.checked)} of {len(self.pins)} locked packages were checked."
        if self.unchecked:
            for service, cause in self.causes.items():
                yield f"AUDIT: The service {service} had no data: {cause}"
            few = ", ".join(self.unchecked[:_FEW]) + (" and more" if len(self.unchecked) > _FEW else "")
            count = f"{len(self.unchecked)} of {len(self.pins)} locked packages ({few})"
            yield f"AUDIT: NOT DONE for {count}: there is no data about them. This is not a pass."
        elif not self.vulnerabilities:
            yield "AUDIT: PASSED: no known vulnerability."


def pins_of(files: Iterable[Path]) -> Mapping[str, str]:
    """Return the versions by package; raise ValueError for a package with two, of which one would not be checked."""
    pins: dict[str, str] = {}
    for path in files:
        for name, version in _PIN.findall(path.read_text()):
            if pins.setdefault(name.lower(), version) != version:
                raise ValueError(f"{name} is locked in two versions: lock one of them")
    return pins


def audited(pins: Mapping[str, str], services: Sequence[str], osv_url: str = "") -> Audit:
    audit = Audit(pins)
    for service in services:
        if audit.unchecked:
            _ask(audit, service, osv_url)
    return audit


def _ask(audit: Audit, service: str, osv_url: str) -> None:
    """Add to an audit what one service knows about the packages that are not checked yet."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.writelines(f"{name}=={audit.pins[name]}\n" for name in audit.unchecked)
        requirements.flush()
        command = [sys.executable, "-m", "pip_audit", "--requirement", requirements.name, "--no-deps", "--disable-pip"]
        command += ["--vulnerability-service", service, "--format", "json", "--progress-spinner", "off"]
        command += ["--timeout", str(_TIMEOUT_S), *(["--osv-url", osv_url] if osv_url else [])]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = json.loads(result.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        audit.causes[service] = (result.stderr.strip() or "no output").splitlines()[-1]
        return
    for each in found:
        if reason := each.get("skip_reason"):
            audit.causes[service] = reason
            continue
        audit.checked.add(each["name"])
        audit.vulnerabilities |= {
            Vulnerability(each["name"], each["version"], one["id"], tuple(one["fix_versions"])) for one in each["vulns"]
        }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="lock files")
    parser.add_argument("--service", action="append", choices=SERVICES, help="ask this one only (repeatable)")
    parser.add_argument("--osv-url", default="", help="ask the service osv at this URL")
    given = parser.parse_args(arguments)
    audit = audited(pins_of(given.files), given.service or SERVICES, given.osv_url)
    print("\n".join(audit.lines()))
    return 1 if audit.vulnerabilities else 0


if __name__ == "__main__":
    sys.exit(main())
