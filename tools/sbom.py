"""Software bill of materials (CycloneDX) of what the wheel needs at run time.

`python -m tools.sbom FILE` writes it. Versions and licenses are those of the environment that was installed from the
lock, hashes are those of the lock: of every file that may be installed. What only an extra needs is optional.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import Distribution, PackageMetadata, distribution
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from remuda.kernel.clock import SystemClock
from remuda.version import describe

PROGRAM, EXTRAS = "remuda", ("kubernetes",)
LOCK = Path(__file__).parents[1] / "requirements.lock"
SCHEMA = SchemaVersion.V1_6

_LOCKED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==\S+[^\n]*\\\n((?:    --hash=\S+[ \\]*\n)+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_LONGEST_NAME = 100
_CLASSIFIER = "License :: "


@dataclass
class Materials:
    """The distributions that the program needs, by name, each with the names of those it needs itself."""

    needs: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, extras: Sequence[str] = ()) -> None:
        """Add a distribution with these extras, and all that it needs on this platform."""
        known = self.needs.setdefault(name, set())
        for each, its_extras in sorted(requirements_of(distribution(name), extras)):
            if each not in known or its_extras:
                known.add(each)
                self.add(each, its_extras)


def requirements_of(one: Distribution, extras: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a distribution with these extras needs on this platform, each with its extras."""
    for text in one.requires or ():
        each = Requirement(text)
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(each.name), tuple(sorted(each.extras))


def hashes_of(lock: str) -> Mapping[str, Sequence[str]]:
    return {canonicalize_name(name): _HASH.findall(hashes) for name, hashes in _LOCKED.findall(lock)}


def licenses_of(metadata: PackageMetadata) -> list[License]:
    """Return the license as an SPDX expression if the package has one, otherwise as it names it."""
    factory = LicenseFactory()
    if "License-Expression" in metadata:
        return [factory.make_with_expression(metadata["License-Expression"])]
    name = metadata["License"].strip() if "License" in metadata else ""
    if name and len(name) <= _LONGEST_NAME and "\n" not in name:
        return [factory.make_from_string(name)]
    classifiers = [each for each in metadata.get_all("Classifier") or () if each.startswith(_CLASSIFIER)]
    return [factory.make_with_name(each.rpartition(" :: ")[2]) for each in classifiers]


def bill_of_materials(lock: str, made: datetime) -> Bom:
    required, every = Materials(), Materials()
    required.add(PROGRAM)
    every.add(PROGRAM, EXTRAS)
    hashes = hashes_of(lock)
    components = {name: _component(name, hashes.get(name, ())) for name in every.needs}
    for name, each in components.items():
        each.scope = ComponentScope.REQUIRED if name in required.needs else ComponentScope.OPTIONAL
    program = components.pop(PROGRAM)
    program.type, program.scope, program.version = ComponentType.APPLICATION, None, describe().version
    bom = Bom(components=components.values(), serial_number=uuid5(NAMESPACE_URL, f"{describe()} {lock}"))
    bom.metadata.component, bom.metadata.timestamp = program, made
    for name, needs in every.needs.items():
        bom.register_dependency(components.get(name, program), [components[each] for each in needs])
    return bom


def _component(name: str, hashes: Sequence[str]) -> Component:
    one = distribution(name)
    purl = PackageURL("pypi", name=name, version=one.version)
    return Component(
        name=name,
        version=one.version,
        bom_ref=purl.to_string(),
        purl=purl,
        description=str(one.metadata.json.get("summary", "")),
        licenses=licenses_of(one.metadata),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
    )


def document(lock: str, made: datetime) -> str:
    text = make_outputter(bill_of_materials(lock, made), OutputFormat.JSON, SCHEMA).output_as_string(indent=2)
    return f"{text}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the file to write")
    target: Path = parser.parse_args(arguments).file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(document(LOCK.read_text(), SystemClock().now()))
    print(f"{target} lists what the wheel needs.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
