"""Programs of Debian's packages chromium and chromium-driver: installed, or unpacked by `make test-browser`."""

import shutil
from pathlib import Path

UNPACKED = Path(__file__).parents[3] / ".venv" / "chromium"
"""Directory into which `tools/install_chromium.sh` unpacks the packages if it may not install them."""


def chromium() -> str:
    return _program("chromium", "usr/lib/chromium/chromium")


def chromedriver() -> str:
    return _program("chromedriver", "usr/bin/chromedriver")


def libraries() -> dict[str, str]:
    """Return the environment in which unpacked programs find their libraries; empty for installed ones."""
    found = [str(path) for path in UNPACKED.glob("usr/lib/*-linux-gnu")]
    return {"LD_LIBRARY_PATH": ":".join(found)} if found else {}


def _program(name: str, path: str) -> str:
    unpacked = UNPACKED / path
    found = str(unpacked) if unpacked.exists() else shutil.which(name)
    assert found is not None, f"{name} is not installed: run make test-browser, or install chromium and chromium-driver"
    return found
