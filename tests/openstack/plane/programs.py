"""The programs of an OpenStack: its services from the Python registry, MariaDB and RabbitMQ from Debian's packages.

`ensure()` installs them in the user's cache, once for each content of requirements.lock. It needs no root, changes
nothing else on the machine and starts nothing. Runs that ask at the same time wait for the first one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kit.planes import cache, locked, say
from tools import debian_programs

NAME = "openstack"
HERE = Path(__file__).resolve().parent
LOCK_FILE = HERE / "requirements.lock"
DRIVERS = HERE / "drivers"
DEBIAN_PROGRAMS = ("mariadb-server-core", "mariadb-client-core", "rabbitmq-server")
ERLANG = ("base", "asn1", "crypto", "eldap", "inets", "mnesia", "os-mon", "parsetools")
ERLANG_TOO = ("public-key", "runtime-tools", "ssl", "syntax-tools", "tools", "xmerl")
ERLANG_HOME = "usr/lib/erlang"
LIBRARIES = ("liburing2", "libaio1")
BUILD_TOOLS = ("gcc",)


class InstallError(RuntimeError):
    """OpenStack cannot be installed on this machine; the message is one sentence with the cause."""


@dataclass(frozen=True)
class Programs:
    """An installation."""

    home: Path

    @property
    def debian(self) -> Path:
        return self.home / "debian"

    @property
    def venv(self) -> Path:
        return self.home / "venv"

    @property
    def site_packages(self) -> Path:
        (found,) = self.venv.glob("lib/python3*/site-packages")
        return found

    @property
    def data_files(self) -> Path:
        """Directory of the configuration files that the packages bring, such as nova/api-paste.ini."""
        return self.venv / "etc"

    def python(self, name: str) -> str:
        """Return the path of a program of the virtual environment."""
        return str(self.venv / "bin" / name)

    def system(self, name: str) -> str:
        """Return the path of a program of Debian's packages."""
        # RabbitMQ's own directory first: Debian's wrapper of the same name changes to a system user.
        places = [*self.debian.glob("usr/lib/rabbitmq/lib/*/sbin"), self.debian / "usr/sbin", self.debian / "usr/bin"]
        found = shutil.which(name, path=os.pathsep.join(map(str, places)))
        if found is None:
            raise InstallError(f"{self.debian} has no program {name}: remove {self.home} and try again.")
        return found

    def environment(self) -> dict[str, str]:
        """Return the environment in which all programs run: no proxy, no credentials and no Python path of the user."""
        own = {
            name: value
            for name, value in debian_programs.environment(self.debian).items()
            if not name.startswith(("OS_", "PYTHON")) and not name.lower().endswith("_proxy")
        }
        path = f"{self.venv}/bin:{self.debian}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return own | {
            "PATH": path,
            "PYTHONPATH": str(DRIVERS),
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore",
            "MALLOC_ARENA_MAX": "2",
        }


def ensure() -> Programs:
    """Return the installation, making it first if the cache lacks it."""
    programs = Programs(cache(NAME) / digest())
    complete = programs.home / "complete"
    with locked(cache(NAME) / "lock"):
        if not complete.exists():
            shutil.rmtree(programs.home, ignore_errors=True)  # left by an installation that was killed
            programs.home.mkdir()
            install(programs)
            complete.touch()
        shutil.copyfile(DRIVERS / "nova_driver.py", programs.site_packages / "nova/virt/simulated.py")
    return programs


def digest() -> str:
    """Return the name of the installation: what is locked, and for which Python and directory it was installed."""
    recipe = LOCK_FILE.read_bytes() + repr((sys.version_info[:2], str(cache(NAME)))).encode()
    return hashlib.sha256(recipe).hexdigest()[:16]


def install(programs: Programs) -> None:
    for tool in BUILD_TOOLS:
        if shutil.which(tool) is None:
            raise InstallError(f"OpenStack cannot be installed: {tool} is missing, which compiles uWSGI.")
    say(NAME, "installing MariaDB and RabbitMQ from Debian's packages")
    packages = [*DEBIAN_PROGRAMS, *(f"erlang-{each}" for each in (*ERLANG, *ERLANG_TOO)), *LIBRARIES]
    try:
        debian_programs.unpack(packages, programs.debian)
    except debian_programs.NoPackage as error:
        raise InstallError(f"OpenStack cannot be installed: {error}") from None
    erlang = programs.debian / ERLANG_HOME
    for script in (erlang / "bin/erl", *erlang.glob("erts-*/bin/erl")):  # they know only where Debian installs them
        script.write_text(script.read_text().replace(f"ROOTDIR=/{ERLANG_HOME}", f"ROOTDIR={erlang}"))
    say(NAME, "installing OpenStack from the Python registry: about a minute")
    run([sys.executable, "-m", "venv", str(programs.venv)])
    uv = [sys.executable, "-m", "uv", "pip", "sync", "--quiet", "--compile-bytecode", "--require-hashes"]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run([*uv, "--python", programs.python("python"), str(LOCK_FILE)], own)


def run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        cause = (result.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise InstallError(f"OpenStack cannot be installed: {' '.join(command[:4])} failed ({cause.strip()}).")
