"""Version: the release and the exact source revision of the running program.

A wheel contains the revision in ``_revision.txt``, written when it is built. In a checkout there is no such file and
git is called, but only on request, never at import, because most processes do not need it.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ServiceDescriptor:
    """The name, version and revision of a program."""

    name: str
    version: str
    revision: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} (revision {self.revision})"


def describe() -> ServiceDescriptor:
    return ServiceDescriptor(name="remuda", version=release(), revision=revision_of(Path(__file__).parent))


@cache
def release() -> str:
    from importlib.metadata import version  # noqa: PLC0415  costs more than everything else here

    return version("remuda")


@cache
def source_digest() -> str:
    """Return a digest of the program's source files, which changes with any of them, committed or not.

    It reads half a thousand files, so a server calls it in a thread.
    """
    from hashlib import blake2b  # noqa: PLC0415  most processes do not need it

    package, digest = Path(__file__).parent, blake2b(digest_size=16)
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def revision_of(package: Path) -> str:
    """Return the revision a package directory was built from, or that of its checkout, or "unknown"."""
    revision_file = package / "_revision.txt"
    if revision_file.is_file():
        return revision_file.read_text(encoding="utf-8").strip() or _UNKNOWN
    checkout = package.parent.parent
    # A virtual environment may be inside another project's checkout, whose revision would be wrong.
    if package.parent.name != "src" or not (checkout / ".git").exists():
        return _UNKNOWN
    return _git_revision(checkout)


def _git_revision(checkout: Path) -> str:
    import subprocess  # noqa: PLC0415  only a checkout needs it

    command = ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, check=True, text=True, timeout=5)  # noqa: S603  a fixed command
    except (OSError, subprocess.SubprocessError):
        return _UNKNOWN
    return result.stdout.strip() or _UNKNOWN
