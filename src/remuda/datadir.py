"""The directory of a process: what lies in it, and who has it.

Everything a process keeps is in one directory that only its owner can enter: the store's file, the file with the
sealing keys, the files of the simulated clouds and, for scripts, `credentials.json`. While it runs, `process.json` says
where it answers, for commands on the same machine. A store is never opened with new keys in place of those it was
sealed with, and an empty file is not taken for a new store where one was in use before: that would hide what was lost
behind a first start.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from remuda.kernel.errors import Invalid
from remuda.kernel.files import write_private
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer, create_keyring_file, load_keyring

_PRIVATE = 0o700


class _Process(msgspec.Struct, frozen=True):
    url: str
    pid: int


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """The directory, by its path."""

    path: Path

    @property
    def store(self) -> Path:
        return self.path / "remuda.db"

    @property
    def keys(self) -> Path:
        """The keys that seal its secrets."""
        return self.path / "keys.json"

    @property
    def credentials(self) -> Path:
        """What scripts need to ask the process for something."""
        return self.path / "credentials.json"

    @property
    def clouds(self) -> Path:
        """The simulated clouds, a file for each: they are not ours, and outlive the store."""
        return self.path / "clouds"

    @property
    def _process(self) -> Path:
        return self.path / "process.json"

    def prepare(self, randomness: Randomness) -> Sealer:
        """Make the directory and the keys if this is the first start, and only then; return what seals with them."""
        try:
            self.path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            cause = error.strerror or str(error)
            problem = f"{self.path} cannot be made ({cause})"
            raise Invalid("--data", problem, remedy="choose another directory") from None
        if self.store.exists() and not self.keys.exists():
            remedy = f"restore {self.keys} from its backup, because what it sealed opens with nothing else"
            raise Invalid("--data", f"{self.path} holds a store without its keys", remedy=remedy)
        self.check_store()
        return Sealer(create_keyring_file(self.keys, randomness))

    def check_store(self) -> None:
        """Raise Invalid if the store is another user's, or empty and was not before.

        One whose first start was cut off can be empty.
        """
        if not self.store.exists():
            return
        if not os.access(self.store, os.R_OK | os.W_OK):
            remedy = "run this as its owner, or give it mode 600"
            raise Invalid(f"The store {self.store}", "cannot be read and written by this user", remedy=remedy)
        if not self.store.stat().st_size and (self.credentials.exists() or self._was_closed):
            remedy = "restore it from a backup, or remove it to begin anew"
            raise Invalid(f"The store {self.store}", "is empty although it was in use", remedy=remedy)

    @property
    def _was_closed(self) -> bool:
        """Whether a process has closed the store in order: its lock holds something from before the store is made."""
        lock = self.store.with_name(f"{self.store.name}.lock")
        return lock.exists() and not lock.stat().st_size

    def sealer(self) -> Sealer:
        """Return what seals with the keys that are there; raise NotFound or Invalid if none can be read."""
        return Sealer(load_keyring(self.keys))

    @contextmanager
    def announced(self, url: str, pid: int) -> Iterator[None]:
        """Say where the process answers, for as long as the block runs."""
        try:
            write_private(self._process, msgspec.json.encode(_Process(url=url, pid=pid)))
        except OSError as error:
            cause = error.strerror or str(error)
            problem = f"{self._process} cannot be written ({cause})"
            raise Invalid("--data", problem, remedy="check the directory and its permissions") from None
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                self._process.unlink()

    def running_at(self) -> str | None:
        """Return where the process that has this directory answers, if it has said so."""
        try:
            return msgspec.json.decode(self._process.read_bytes(), type=_Process).url
        except (OSError, msgspec.MsgspecError):
            return None
