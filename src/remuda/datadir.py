"""Data directory of a process, which only its owner can enter: its files and their checks.

It has the store, the sealing keys, the simulated clouds and, for scripts, `credentials.json`; a self-signed
certificate, if one is asked for; while the process runs, also its address in `process.json`. A store is never opened
with other keys than it was sealed with, and an empty file is not taken for a new store if it was in use before.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.files import check_format, write_private
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer, create_keyring_file, load_keyring

_PRIVATE = 0o700


def default_directory(environment: Mapping[str, str]) -> Path:
    """Return the data directory of a user who names none."""
    base = environment.get("XDG_DATA_HOME")
    if base:
        return Path(base) / "remuda"
    try:
        return Path.home() / ".local" / "share" / "remuda"
    except RuntimeError:
        raise Invalid("--data", "is not given, and there is no home directory", remedy="name a directory") from None


class _Process(msgspec.Struct, frozen=True):
    url: str
    pid: int
    certificate: str = ""
    """The certificate that the process shows, as PEM; empty without TLS."""
    is_insecure: bool = False
    """Whether clients on other machines use it without TLS."""
    metrics: str = ""
    """URL of the metrics; empty if they are not served."""


class ResealRecord(msgspec.Struct, frozen=True):
    """The key with which everything stored was sealed again, and how many objects that were."""

    key: str = ""
    resealed: int = 0


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """The directory, by its path."""

    path: Path

    @property
    def store(self) -> Path:
        return self.path / "remuda.db"

    @property
    def keys(self) -> Path:
        return self.path / "keys.json"

    @property
    def credentials(self) -> Path:
        return self.path / "credentials.json"

    @property
    def audit_head(self) -> Path:
        """The head of the audit file's chain, by which lines that were cut off are found."""
        return self.path / "audit-head.json"

    @property
    def clouds(self) -> Path:
        """The directory of the simulated clouds, a file for each: they are external, and outlive the store."""
        return self.path / "clouds"

    def cloud_files(self) -> Sequence[Path]:
        """Return the files of the simulated clouds."""
        return sorted(self.clouds.glob("*.db"))

    @property
    def _reseal_record(self) -> Path:
        return self.path / "resealed.json"

    def resealed(self) -> ResealRecord:
        """Return the key with which everything was sealed last; an empty record if that is not known."""
        try:
            return msgspec.json.decode(self._reseal_record.read_bytes(), type=ResealRecord)
        except (OSError, msgspec.MsgspecError):
            return ResealRecord()

    def record_reseal(self, record: ResealRecord) -> None:
        """Record that everything stored is sealed with a key."""
        write_private(self._reseal_record, msgspec.json.encode(record))

    def forget_reseal(self) -> None:
        """Forget with which key everything is sealed, because the store is replaced."""
        self._reseal_record.unlink(missing_ok=True)

    @property
    def tls_certificate(self) -> Path:
        """The self-signed certificate, if the process is asked to make one."""
        return self.path / "tls.crt"

    @property
    def tls_key(self) -> Path:
        return self.path / "tls.key"

    @property
    def _process(self) -> Path:
        return self.path / "process.json"

    def prepare(self, randomness: Randomness, *, now: datetime | None = None) -> Sealer:
        """Create the directory and the keys at the first start only; return the sealer."""
        try:
            self.path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            cause = error.strerror or str(error)
            problem = f"{self.path} cannot be created ({cause})"
            raise Invalid("--data", problem, remedy="choose another directory") from None
        if self.store.exists() and not self.keys.exists():
            remedy = f"restore {self.keys} from its backup, because the stored secrets cannot be opened without it"
            raise Invalid("--data", f"{self.path} holds a store without its keys", remedy=remedy)
        self.check_store()
        return Sealer(create_keyring_file(self.keys, randomness, now=now))

    def check_store(self) -> None:
        """Raise Invalid, StoreTooOld or StoreTooNew unless the store can be used; an empty one only if it is new."""
        if not self.store.exists():
            return
        if not os.access(self.store, os.R_OK | os.W_OK):
            remedy = "run this as its owner, or give it mode 600"
            raise Invalid(f"The store {self.store}", "cannot be read and written by this user", remedy=remedy)
        if not self.store.stat().st_size and (self.credentials.exists() or self._was_closed):
            remedy = "restore it from a backup, or remove it to start with an empty one"
            raise Invalid(f"The store {self.store}", "is empty although it was in use", remedy=remedy)
        check_format(self.store)

    @property
    def _was_closed(self) -> bool:
        """Whether a process has closed the store cleanly: the lock file is empty then, and not before."""
        lock = self.store.with_name(f"{self.store.name}.lock")
        return lock.exists() and not lock.stat().st_size

    def sealer(self) -> Sealer:
        """Return a sealer with the existing keys; raise NotFound or Invalid if they cannot be read."""
        return Sealer(load_keyring(self.keys))

    def check_keys(self, sealer: Sealer) -> None:
        """Raise Unusable if the keys were rotated since a sealer was made. Call it while the store is locked."""
        if load_keyring(self.keys).current.id != sealer.current_id:
            raise Unusable(f"The keys {self.keys} were rotated during the start: run the command again.")

    @contextmanager
    def announced(
        self, url: str, pid: int, *, certificate: str = "", is_insecure: bool = False, metrics: str = ""
    ) -> Iterator[None]:
        """Write the addresses of the process and its metrics, for as long as the block runs."""
        self._announce(_Process(url=url, pid=pid, certificate=certificate, is_insecure=is_insecure, metrics=metrics))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                self._process.unlink()

    def announce_certificate(self, certificate: str) -> None:
        """Write that the process shows another certificate (PEM) from now on."""
        process = self._running()
        if process is not None:
            self._announce(msgspec.structs.replace(process, certificate=certificate))

    def _announce(self, process: _Process) -> None:
        try:
            write_private(self._process, msgspec.json.encode(process))
        except OSError as error:
            cause = error.strerror or str(error)
            problem = f"{self._process} cannot be written ({cause})"
            raise Invalid("--data", problem, remedy="check the directory and its permissions") from None

    def running_at(self) -> str | None:
        """Return the address of the process that uses this directory, if there is one."""
        process = self._running()
        return None if process is None else process.url

    def certificate_of_process(self) -> str:
        """Return the certificate that the process shows to clients, as PEM; empty without TLS or a process."""
        process = self._running()
        return "" if process is None else process.certificate

    def is_process_insecure(self) -> bool:
        """Tell whether clients on other machines use the process without TLS."""
        process = self._running()
        return process is not None and process.is_insecure

    def metrics_at(self) -> str:
        """Return the URL of the metrics of the process that uses this directory; empty if there is none."""
        process = self._running()
        return "" if process is None else process.metrics

    def _running(self) -> _Process | None:
        try:
            return msgspec.json.decode(self._process.read_bytes(), type=_Process)
        except (OSError, msgspec.MsgspecError):
            return None
