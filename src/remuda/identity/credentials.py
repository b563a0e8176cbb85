"""`credentials.json`: what a script needs to ask this system for something, in one file that only its owner can read.

A token and its hash in the store cannot change in one step, so the file is written in two: the new content lies beside
it (`credentials.json.new`) before the store knows the token, and takes its place afterwards. Whoever finds it lying
there after a crash can tell by the stored hash whether the step in between was taken.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from remuda.kernel.errors import Invalid
from remuda.kernel.files import move_over, write_private
from remuda.kernel.secrets import Secret, hide, reveal


class SmallServer(msgspec.Struct, frozen=True, kw_only=True):
    """What a script can make a small server of, if it wants any."""

    region_id: str
    flavor_id: str
    image_id: str


class Credentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the file holds."""

    endpoints: Mapping[str, str]
    """The URL of each service, by its name."""
    token: Secret
    """Of the service account that the first start made."""
    organization_id: str
    project_id: str
    region_id: str | None = None
    """With the next two, what a small server can be made of; where no region has one, they are not there."""
    flavor_id: str | None = None
    image_id: str | None = None


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """The file, by its path."""

    path: Path

    def read(self) -> Credentials | None:
        """Return what scripts read, or None if there is no such file or it is something else now."""
        return _read(self.path)

    def read_staged(self) -> Credentials | None:
        """Return what was staged and not published."""
        return _read(self._staged)

    def stage(self, credentials: Credentials) -> None:
        """Write new content beside the file."""
        content = msgspec.json.format(msgspec.json.encode(credentials, enc_hook=reveal)) + b"\n"
        try:
            write_private(self._staged, content)
        except OSError as error:
            raise self._unwritable(error) from None

    def publish(self) -> None:
        """Let what was staged take the file's place."""
        try:
            move_over(self._staged, self.path)
        except OSError as error:
            raise self._unwritable(error) from None

    def drop_staged(self) -> None:
        with contextlib.suppress(OSError):
            self._staged.unlink()

    @property
    def _staged(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    def _unwritable(self, error: OSError) -> Invalid:
        cause = error.strerror or str(error)
        remedy = "check the directory and its permissions"
        return Invalid(str(self.path), f"cannot be written ({cause})", remedy=remedy)


def _read(path: Path) -> Credentials | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Credentials, dec_hook=hide)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
