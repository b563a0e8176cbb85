"""Credentials file `credentials.json`: endpoints and token for scripts, readable only by its owner.

A token and its hash in the store cannot change in one step. So new content is staged in `credentials.json.new` before
the store has the token, and published afterwards. After a crash, the stored hash tells whether staged content is valid.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from remuda.kernel.errors import Invalid
from remuda.kernel.files import move_over, write_private
from remuda.kernel.secrets import Secret, hide, reveal


class ExampleInstance(msgspec.Struct, frozen=True, kw_only=True):
    """Region, flavor and image of an example instance for scripts."""

    region_id: str
    flavor_id: str
    image_id: str


class Credentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Content of the file."""

    endpoints: Mapping[str, str]
    token: Secret
    """Token of the service account that the bootstrap created."""
    organization_id: str
    project_id: str
    region_id: str | None = None
    """With the next two, an example instance; absent if no region has a suitable one."""
    flavor_id: str | None = None
    image_id: str | None = None


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """Credentials file at a path."""

    path: Path

    def read(self) -> Credentials | None:
        """Return the content, or None if the file is missing or invalid."""
        return _read(self.path)

    def read_staged(self) -> Credentials | None:
        return _read(self._staged)

    def stage(self, credentials: Credentials) -> None:
        content = msgspec.json.format(msgspec.json.encode(credentials, enc_hook=reveal)) + b"\n"
        try:
            write_private(self._staged, content)
        except OSError as error:
            raise self._unwritable(error) from None

    def publish(self) -> None:
        """Replace the file by the staged content."""
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
