"""Programs of Debian's packages that this machine lacks, unpacked without installing them.

`python -m tools.debian_programs DIRECTORY PROGRAM...` downloads what is not on the PATH, with the shared libraries that
it lacks, and unpacks it below the directory. It needs neither root nor an installation, and starts no service.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_BINARIES = ("usr/sbin", "usr/bin")
_LIBRARIES = ("usr/lib", "lib")
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEPENDENCIES = ("--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances")
_ROUNDS = 3


class NoPackage(Exception):  # noqa: N818  named like the errors of the program
    """Raised when a package cannot be had; the machine needs Debian's package manager and its mirror."""


def find(program: str, unpacked: Path) -> Path | None:
    """Return the path of a program of this machine, or of the unpacked packages, or None."""
    places = os.pathsep.join([os.environ.get("PATH", ""), _SYSTEM, *(str(unpacked / each) for each in _BINARIES)])
    found = shutil.which(program, path=places)
    return None if found is None else Path(found)


def environment(unpacked: Path) -> Mapping[str, str]:
    """Return the environment in which an unpacked program finds its libraries."""
    directories = {str(each.parent) for root in _LIBRARIES for each in (unpacked / root).rglob("*.so.*")}
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(sorted(directories))}


def install(program: str, unpacked: Path) -> Path:
    """Return the path of a program, after unpacking its packages if need be, or raise NoPackage."""
    if find(program, unpacked) is None:
        unpack([program], unpacked)
    found = find(program, unpacked)
    if found is None:
        raise NoPackage(f"the package {program} has no program of this name")
    for _ in range(_ROUNDS):
        if not _lacks_libraries(found, unpacked):
            return found
        unpack(_missing_libraries(program, unpacked), unpacked)
    raise NoPackage(f"{found} lacks shared libraries: install the package {program}")


def _lacks_libraries(program: Path, unpacked: Path) -> bool:
    command = ["ldd", str(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(unpacked))
    return "not found" in result.stdout


def _missing_libraries(package: str, unpacked: Path) -> Sequence[str]:
    told = _apt(unpacked, "apt-cache", "depends", "--recurse", *_DEPENDENCIES, package)
    libraries = {line for line in told.splitlines() if line.startswith("lib")}
    return sorted(each for each in libraries if not _is_installed(each))


def _is_installed(package: str) -> bool:
    return subprocess.run(["dpkg", "--status", package], capture_output=True, check=False).returncode == 0


def unpack(packages: Sequence[str], unpacked: Path) -> None:
    """Download packages, and unpack them below the directory, or raise NoPackage."""
    unpacked.mkdir(parents=True, exist_ok=True)
    if not (unpacked / "lists").exists():
        (unpacked / "lists" / "partial").mkdir(parents=True)
        _apt(unpacked, "apt-get", "update")
    _apt(unpacked, "apt-get", "download", *packages)
    for archive in sorted(unpacked.glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(archive), str(unpacked)], check=True)
        archive.unlink()


def _apt(unpacked: Path, *words: str) -> str:
    """Run a command of the package manager with lists and caches of its own."""
    root = unpacked.absolute()
    options = [f"Dir::State::Lists={root}/lists", f"Dir::Cache={root}/cache", "APT::Sandbox::User="]
    if os.geteuid() == 0:
        options[-1] += "root"
    command = [words[0], *(part for each in options for part in ("-o", each)), *words[1:]]
    try:
        result = subprocess.run(command, cwd=unpacked, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise NoPackage(f"{words[0]} is missing: install the program by hand") from None
    except subprocess.CalledProcessError as error:
        raise NoPackage(f"{' '.join(words)} failed: {error.stderr.strip()}") from None
    return result.stdout


def main() -> int:
    unpacked = Path(sys.argv[1])
    for program in sys.argv[2:]:
        try:
            print(f"{program}: {install(program, unpacked)}")
        except NoPackage as error:
            print(f"{program} cannot be had: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
