"""Writes the git revision into what is built, so that an installed Remuda knows its source.

An editable install gets none: its code changes under it, and ``remuda.version`` asks git each time. Without git, as
when a wheel is built from an unpacked source archive, nothing is added and the file the archive brought is packed.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACES = {"wheel": "remuda/_revision.txt", "sdist": "src/remuda/_revision.txt"}


class RevisionHook(BuildHookInterface[Any]):
    """Adds ``_revision.txt`` to a wheel or a source archive."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the revision beside the build and have it packed."""
        if version == "editable" or not (Path(self.root) / ".git").exists():
            return
        command = ["git", "-C", self.root, "rev-parse", "--short=12", "HEAD"]
        revision = subprocess.run(command, capture_output=True, check=True, text=True).stdout  # noqa: S603
        self._folder = tempfile.TemporaryDirectory()
        written = Path(self._folder.name) / "_revision.txt"
        written.write_text(revision, encoding="utf-8")
        build_data["force_include"][str(written)] = _PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was written."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
