"""Which Remuda this is: the release and the exact source it was built from.

A wheel carries the revision in ``_revision.txt``, written when it is built. A checkout has no such file and asks git.
The answer is worked out when somebody asks, never at import, because most processes never do.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ServiceDescriptor:
    """What a service says about itself."""

    name: str
    version: str
    revision: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} (revision {self.revision})"


def describe() -> ServiceDescriptor:
    """Describe the Remuda that is running."""
    return ServiceDescriptor(name="remuda", version=release(), revision=revision_of(Path(__file__).parent))


@cache
def release() -> str:
    from importlib.metadata import version  # noqa: PLC0415  costs more than everything else here

    return version("remuda")


def revision_of(package: Path) -> str:
    """Return the revision a package directory was built from, or that of the checkout it lies in, or "unknown"."""
    written = package / "_revision.txt"
    if written.is_file():
        return written.read_text(encoding="utf-8").strip() or _UNKNOWN
    checkout = package.parent.parent
    # A virtual environment may lie inside a foreign checkout, whose revision would be a lie.
    if package.parent.name != "src" or not (checkout / ".git").exists():
        return _UNKNOWN
    return _git_revision(checkout)


def _git_revision(checkout: Path) -> str:
    import subprocess  # noqa: PLC0415  only a checkout needs it

    command = ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, text=True, timeout=5)  # noqa: S603  a command of our own
    except (OSError, subprocess.SubprocessError):
        return _UNKNOWN
    return answer.stdout.strip() or _UNKNOWN
