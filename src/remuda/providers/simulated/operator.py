"""Out-of-band actions on the simulated cloud: a server is stopped, its host fails, a server disappears.

They work on the cloud's file alone, so a command can run them while another process has the cloud open; that process
notices the changes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, NotFound
from remuda.providers.contract.common import Handle, WrongState, id_in, server_name
from remuda.providers.contract.servers import CloudServer, CloudServerState
from remuda.providers.simulated.database import CloudDatabase, open_database
from remuda.providers.simulated.server_states import ServerStateMachine
from remuda.providers.simulated.timers import Timers

_REMOVING: frozenset[CloudServerState] = frozenset({"removing"})


class Operator:
    """Operator of a cloud. A server is given by our id, its id or name in the cloud, or its host name."""

    def __init__(self, storage: CloudDatabase, timers: Timers, states: ServerStateMachine) -> None:
        self._storage, self._timers, self._states = storage, timers, states

    def servers(self) -> list[CloudServer]:
        self._timers.apply_due()
        rows = self._storage.rows("SELECT tenancy, name FROM servers ORDER BY number")
        return [self._states.get(Handle(*row)) for row in rows]

    def hostname(self, server: CloudServer) -> str:
        return self._states.hostname(server.handle)

    def stop(self, server: str) -> Handle:
        return self._enter(server, {"running"}, "stopped")

    def fail(self, server: str, reason: str = "the host failed") -> Handle:
        return self._enter(server, None, "failed", fault=reason)

    def migrate(self, server: str) -> str:
        """Move a server to another host; return the host's name, or raise NoCapacity."""
        handle = self.find(server)
        return self._storage.write(lambda: self._states.migrate(handle))

    def vanish(self, server: str) -> Handle:
        """Delete a server without an event; its port stays."""
        handle = self.find(server)
        self._storage.write(lambda: self._states.remove(handle))
        return handle

    def fill(self, storage: str, used_bytes: int) -> None:

        def effect() -> None:
            self._storage.record_change("storage", Handle("", storage))
            if not self._storage.run("UPDATE storages SET used_bytes = ? WHERE name = ?", (used_bytes, storage)):
                raise NotFound("file storage", storage)

        self._storage.write(effect)

    def find(self, server: str) -> Handle:
        """Return the server that is meant, or raise NotFound, or Invalid if several match."""
        self._timers.apply_due()
        ours = server_name(server, "", 0).partition(".")[0] + "."
        rows = self._storage.rows(
            "SELECT tenancy, name FROM servers WHERE id = ? OR name = ? OR substr(name, 1, ?) = ?",
            (server, server, len(ours), ours),
        )
        found = [Handle(*row) for row in rows]
        found = found or [each.handle for each in self.servers() if self.hostname(each) == server]
        if not found:
            raise NotFound("server", server)
        if len(found) > 1:
            ids = {id_in(each.name) for each in found}
            names = ", ".join(sorted(ids if len(ids) == len(found) else {each.name for each in found}))
            raise Invalid(f"The name {server}", "matches several servers", remedy=f"use one of {names}")
        return found[0]

    def _enter(
        self, server: str, states: set[CloudServerState] | None, state: CloudServerState, *, fault: str = ""
    ) -> Handle:
        handle = self.find(server)

        def effect() -> None:
            present = self._states.get(handle).state
            if present in _REMOVING or (states is not None and present not in states):
                raise WrongState("server", handle.name, state=present)
            self._states.enter(handle, state, fault=fault)

        self._storage.write(effect)
        return handle


@contextmanager
def open_operator(path: Path, clock: Clock) -> Iterator[Operator]:
    """Open the file of a cloud for its operator, whether or not another process has it open."""
    if not path.exists():
        raise NotFound("simulated cloud", str(path))
    storage = open_database(path, clock=clock, syncs="itself")
    try:
        timers = Timers(storage, clock)
        yield Operator(storage, timers, ServerStateMachine(storage, timers))
    finally:
        storage.close()
