"""Login contexts: named logins in one file that only its owner can read.

One context is the current one, which commands use by default. Several commands may run at once, so a change is read,
made and written under a lock.
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


class LoginTokens(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Access token of a login, and its refresh token. The token of a service account has none and does not expire."""

    access: Secret
    refresh: Secret | None = None


class NamedId(msgspec.Struct, frozen=True):
    """Id and name of an organization or a project."""

    id: str
    name: str


class LoginContext(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A login: the services, the tokens, the subject, and the organization and project to work in."""

    endpoints: Mapping[str, str]
    tokens: LoginTokens
    certificate: str = ""
    """The only certificate to trust, as PEM; empty if the authorities of this machine vouch for it."""
    subject: str = ""
    organization: NamedId | None = None
    project: NamedId | None = None


class LoginContexts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All login contexts, by name."""

    current: str = ""
    contexts: Mapping[str, LoginContext] = {}

    def find(self, name: str | None) -> tuple[str, LoginContext]:
        if name is None and not self.current:
            if self.contexts:
                raise Unusable(f"No context is in use: {self.remedy}.")
            raise Unusable("You are not logged in: run remuda login, or see remuda login --help for other ways.")
        chosen = self.current if name is None else name
        found = self.contexts.get(chosen)
        if found is None:
            raise Unusable(f"The context {chosen or repr(chosen)} does not exist: remuda context list shows them.")
        return chosen, found

    @property
    def remedy(self) -> str:
        """The command that puts one of the contexts into use."""
        names = sorted(self.contexts)
        if len(names) == 1:
            return f"run remuda context use {names[0]}"
        return f"run remuda context use NAME with one of {', '.join(names)}"

    def with_context(self, name: str, context: LoginContext) -> "LoginContexts":
        """Return the contexts with one added, or replaced if the name exists."""
        return replace(self, contexts={**self.contexts, name: context})

    def without(self, name: str) -> "LoginContexts":
        """Return the contexts without one. If that was the current one, there is no current one."""
        left = {each: context for each, context in self.contexts.items() if each != name}
        return LoginContexts(current="" if self.current == name else self.current, contexts=left)


_decode = msgspec.json.Decoder(LoginContexts, dec_hook=hide).decode


def default_path(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "remuda" / "contexts.json"


class ContextsFile:
    """The file that holds the login contexts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> LoginContexts:
        """Return the contexts; none if the file does not exist."""
        try:
            return _decode(self._path.read_bytes())
        except FileNotFoundError:
            return LoginContexts()
        except (msgspec.MsgspecError, UnicodeDecodeError):
            remedy = "move the file away and log in again"
            raise Invalid(str(self._path), "is not a list of logins", remedy=remedy) from None
        except OSError as error:
            raise self._unusable(error) from None

    def update(self, change: Callable[[LoginContexts], LoginContexts]) -> LoginContexts:
        """Write what `change` returns for the contexts in the file, and return that."""
        with self.locked():
            return self.write(change(self.read()))

    def write(self, contexts: LoginContexts) -> LoginContexts:
        """Replace the contents of the file. The caller holds the lock."""
        content = msgspec.json.format(msgspec.json.encode(contexts, enc_hook=reveal), indent=2)
        try:
            write_private(self._path, content + b"\n")
        except OSError as error:
            raise self._unusable(error) from None
        return contexts

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the file during the block."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _unusable(self, error: OSError) -> Unusable:
        cause = error.strerror or str(error)
        return Unusable(f"{self._path} cannot be used ({cause}): check its permissions, or set XDG_CONFIG_HOME.")
