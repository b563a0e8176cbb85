"""Who is logged in where: contexts, by name, in one file that only its owner can read.

One of them is the current one, which commands use unless they are told another. Several commands may run at once: a
change is read, made and written under a lock.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.files import write_private
from remuda.kernel.secrets import Secret, hide, reveal


class Tokens(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What shows who somebody is."""

    access: Secret
    refresh: Secret | None = None
    """Gets the next one; what was made for scripts has none, and lasts."""


class Named(msgspec.Struct, frozen=True):
    """An organization or a project."""

    id: str
    name: str


class Context(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A login: where, as whom, and for which project."""

    endpoints: Mapping[str, str]
    """The URL of each service."""
    tokens: Tokens
    subject: str = ""
    organization: Named | None = None
    project: Named | None = None


class Contexts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All of them."""

    current: str = ""
    contexts: Mapping[str, Context] = {}

    def find(self, name: str | None) -> tuple[str, Context]:
        """Return a context by its name, or the current one."""
        if name is None and not self.current:
            if self.contexts:
                raise Unusable(f"No login is in use: {self.choosing}.")
            raise Unusable("You are not logged in: say remuda login, or remuda login --help for other ways.")
        wanted = self.current if name is None else name
        found = self.contexts.get(wanted)
        if found is None:
            raise Unusable(f"There is no context {wanted or repr(wanted)}: remuda context list says which there are.")
        return wanted, found

    @property
    def choosing(self) -> str:
        """How to use one of them, where none is in use."""
        names = sorted(self.contexts)
        if len(names) == 1:
            return f"use {names[0]} with remuda context use {names[0]}"
        return f"choose from {', '.join(names)} with remuda context use NAME"

    def with_(self, name: str, context: Context) -> "Contexts":
        """Return them with one put in, or in the place of the one of that name."""
        return replace(self, contexts={**self.contexts, name: context})

    def without(self, name: str) -> "Contexts":
        """Return them without one; if that was the current one, there is none."""
        left = {each: context for each, context in self.contexts.items() if each != name}
        return Contexts(current="" if self.current == name else self.current, contexts=left)


_decode = msgspec.json.Decoder(Contexts, dec_hook=hide).decode


def default_path(environment: Mapping[str, str]) -> Path:
    """Return where the file is, unless somebody says otherwise."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "remuda" / "contexts.json"


class ContextsFile:
    """The file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Contexts:
        """Return what it says; nothing, if it is not there."""
        try:
            return _decode(self._path.read_bytes())
        except FileNotFoundError:
            return Contexts()
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise Invalid(str(self._path), "is no list of logins", remedy="move it away, and log in again") from None
        except OSError as error:
            raise self._trouble(error) from None

    def change(self, change: Callable[[Contexts], Contexts]) -> Contexts:
        """Write what `change` makes of it, and return that."""
        with self._locked():
            changed = change(self.read())
            content = msgspec.json.format(msgspec.json.encode(changed, enc_hook=reveal), indent=2)
            try:
                write_private(self._path, content + b"\n")
            except OSError as error:
                raise self._trouble(error) from None
        return changed

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._trouble(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _trouble(self, error: OSError) -> Unusable:
        cause = error.strerror or str(error)
        return Unusable(f"{self._path} cannot be used ({cause}): see to it that it is yours, or set XDG_CONFIG_HOME.")
