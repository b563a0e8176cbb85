"""State machine of the simulated cloud's servers, and the capacity of their hosts.

::

    queued ─► building ─► running ◄─► stopping ─► stopped
                             │  ▲                    │
                             └──┴──── rebuilding ◄───┘          any ─► failed, any ─► removing ─► gone
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from remuda.kernel.errors import NotFound
from remuda.kernel.sealing import Sealer
from remuda.providers.contract.catalogue import CloudFlavor
from remuda.providers.contract.common import Handle, NoCapacity, Rejected
from remuda.providers.contract.servers import CloudServer, CloudServerSpec, CloudServerState
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.providers.simulated.database import CloudDatabase, as_datetime
from remuda.providers.simulated.gateway import encode
from remuda.providers.simulated.server_documents import decode_hostname, decode_spec, encode_spec
from remuda.providers.simulated.timers import Timers


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """Capacity of the hosts of each flavor."""

    storage: CloudDatabase

    def load(self, catalogue: SimCatalogue) -> None:
        """Create the catalogue's hosts; a host that is no longer in it gets no new servers."""
        self.storage.run("UPDATE hosts SET size = 0")
        for flavor in catalogue.flavors:
            hosts = catalogue.hosts[flavor.id]
            for number in range(1, hosts.count + 1):
                self.storage.run(
                    "INSERT INTO hosts (flavor, host, size) VALUES (?, ?, ?) "
                    "ON CONFLICT (flavor, host) DO UPDATE SET size = excluded.size",
                    (flavor.id, f"{catalogue.name}-{flavor.name}-{number:02d}", hosts.size),
                )
        self.storage.run("DELETE FROM hosts WHERE size = 0 AND used = 0")

    def with_free_capacity(self, flavor: CloudFlavor) -> CloudFlavor:
        row = self.storage.row("SELECT sum(max(size - used, 0)) FROM hosts WHERE flavor = ?", (flavor.id,))
        return replace(flavor, free=row[0] or 0 if row else 0)

    def reserve(self, flavor: str, *, pinned: str = "", apart_from: str = "") -> str:
        """Reserve capacity on the pinned host or on the emptiest one, and return its name, or raise NoCapacity."""
        if pinned:
            row = self.storage.row("SELECT used < size FROM hosts WHERE flavor = ? AND host = ?", (flavor, pinned))
            if row is None:
                raise Rejected(f"there is no host {pinned} for servers of this flavor")
            host = pinned if row[0] else None
        else:
            row = self.storage.row(
                "SELECT host FROM hosts WHERE flavor = ? AND used < size AND host != ? ORDER BY used, host LIMIT 1",
                (flavor, apart_from),
            )
            host = row[0] if row else None
        if host is None:
            raise NoCapacity(f"the host {pinned}" if pinned else "this flavor")
        self.storage.run("UPDATE hosts SET used = used + 1 WHERE flavor = ? AND host = ?", (flavor, host))
        return str(host)

    def release(self, flavor: str, host: str) -> None:
        self.storage.run("UPDATE hosts SET used = used - 1 WHERE flavor = ? AND host = ?", (flavor, host))


Boot = tuple[float, float]
"""Start and duration of a boot."""
Next = Literal["building", "running", "stopped", "gone"]
"""State that a server enters by time."""

_RETAINED_BOOTS = 3
_COLUMNS = "number, tenancy, name, version, id, state, created, launched, flavor, image, rebuilds, port, host, fault"
_BY_HANDLE = f"SELECT {_COLUMNS} FROM servers WHERE tenancy = ? AND name = ?"  # noqa: S608  the columns are constants
_DUE = "SELECT tenancy, name, next, due, boot_s FROM servers WHERE due <= ? ORDER BY due, number LIMIT ?"
_INSERT = (
    "INSERT INTO servers (tenancy, name, version, id, state, next, due, created, launched, flavor, image, rebuilds, "
    "port, host, boot_s, boots, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "RETURNING number, tenancy, name, version, id, state, created, launched, flavor, image, rebuilds, port, host, fault"
)
_decode_boots = msgspec.msgpack.Decoder(tuple[Boot, ...]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """A server with what only the cloud knows about it."""

    server: CloudServer
    spec: CloudServerSpec
    boots: tuple[Boot, ...]
    """Recent boots; all but the last have ended."""


class ServerStateMachine:
    """State machine of servers."""

    def __init__(self, storage: CloudDatabase, timers: Timers) -> None:
        self._storage, self._timers = storage, timers
        self._hosts = HostCapacity(storage)
        timers.add("servers", self._advance)

    def read(self, handle: Handle) -> CloudServer | None:
        row = self._storage.row(_BY_HANDLE, (handle.tenancy, handle.name))
        return None if row is None else _server(row)

    def get(self, handle: Handle) -> CloudServer:
        """Return a server, or raise NotFound."""
        found = self.read(handle)
        if found is None:
            raise NotFound("server", handle.name)
        return found

    def hostname(self, handle: Handle) -> str:
        """Return the host name of a server, or raise NotFound."""
        return decode_hostname(self._document(self.get(handle))[0])

    def record(self, handle: Handle, sealer: Sealer) -> ServerRecord:
        """Return a server with its spec and boots, or raise NotFound."""
        server = self.get(handle)
        document, boots = self._document(server)
        return ServerRecord(server=server, spec=decode_spec(document, server.id, sealer), boots=_decode_boots(boots))

    def create(self, spec: CloudServerSpec, id_: str, *, sealer: Sealer, queue_s: float, boot_s: float) -> CloudServer:
        """Create a server, on a host with capacity."""
        now, handle = self._storage.now(), spec.handle
        state, then, due = _initial_state(now, queue_s, boot_s)
        boots = () if state == "queued" else ((now, boot_s),)
        host = self._hosts.reserve(spec.flavor, pinned=spec.host)
        version = self._storage.record_change("server", handle)
        self._storage.record_change("port", Handle(handle.tenancy, spec.port))
        row = self._storage.row(
            _INSERT,
            (
                *(handle.tenancy, handle.name, str(version), id_, state, then, due, now),
                *(now if state == "running" else None, spec.flavor, spec.image, spec.rebuilds, spec.port, host),
                *(boot_s, encode(boots), encode_spec(spec, id_, sealer)),
            ),
        )
        if due is not None:
            self._timers.expect(due)
        assert row is not None, "an insert returns its row"
        return _server(row)

    def enter(self, handle: Handle, state: CloudServerState, *, fault: str = "") -> None:
        """Put a server into a state that it does not leave by time."""
        version = self._storage.record_change("server", handle)
        self._storage.run(
            "UPDATE servers SET version = ?, state = ?, next = NULL, due = NULL, fault = ? "
            "WHERE tenancy = ? AND name = ?",
            (str(version), state, fault, handle.tenancy, handle.name),
        )

    def transition(self, handle: Handle, through: CloudServerState, last: Next, *, takes_s: float) -> None:
        """Put a server into one state for a time, then into another."""
        now = self._storage.now()
        self.enter(handle, through)
        if takes_s:
            self._schedule(handle, last, now + takes_s)
        else:
            self._enter(handle, last, now, 0.0)

    def record_boot(self, handle: Handle, *, takes_s: float, is_new: bool = False) -> None:
        """Record that a server boots now; with a new disk, its earlier boots are dropped."""
        self._record_boot(handle, (self._storage.now(), takes_s), is_new=is_new)

    def set_image(self, handle: Handle, image: str, rebuilds: int) -> None:
        """Change the image of a server that is being rebuilt, and the number that its rebuild was sent with."""
        self._storage.run(
            "UPDATE servers SET image = ?, rebuilds = ? WHERE tenancy = ? AND name = ?",
            (image, rebuilds, handle.tenancy, handle.name),
        )

    def set_user_data(self, handle: Handle, user_data: bytes, sealer: Sealer) -> None:
        """Change a server's user data, which its next first boot reads."""
        record = self.record(handle, sealer)
        document = encode_spec(replace(record.spec, user_data=user_data), record.server.id, sealer)
        self._storage.run("UPDATE servers SET document = ? WHERE id = ?", (document, record.server.id))

    def migrate(self, handle: Handle) -> str:
        """Move a server to another host; return the host's name, or raise NoCapacity."""
        server = self.get(handle)
        host = self._hosts.reserve(server.flavor, apart_from=server.host)
        self._hosts.release(server.flavor, server.host)
        version = self._storage.record_change("server", handle)
        self._storage.run("UPDATE servers SET version = ?, host = ? WHERE id = ?", (str(version), host, server.id))
        return host

    def remove(self, handle: Handle) -> None:
        server = self.get(handle)
        self._storage.record_change("server", handle)
        self._storage.record_change("port", Handle(handle.tenancy, server.port))
        self._storage.run("DELETE FROM servers WHERE id = ?", (server.id,))
        self._storage.run("DELETE FROM consoles WHERE server = ?", (server.id,))
        self._hosts.release(server.flavor, server.host)

    def _document(self, server: CloudServer) -> tuple[bytes, bytes]:
        """Return the stored spec and boots of a server."""
        row = self._storage.row("SELECT document, boots FROM servers WHERE id = ?", (server.id,))
        assert row is not None, "it was found before"
        return row[0], row[1]

    def _schedule(self, handle: Handle, state: Next, due: float) -> None:
        self._storage.run(
            "UPDATE servers SET next = ?, due = ? WHERE tenancy = ? AND name = ?",
            (state, due, handle.tenancy, handle.name),
        )
        self._timers.expect(due)

    def _enter(self, handle: Handle, state: Next, moment: float, boot_s: float) -> None:
        """Put a server into the state that it was due to enter at that time."""
        if state == "gone":
            self.remove(handle)
            return
        self.enter(handle, state)
        if state == "building":
            self._record_boot(handle, (moment, boot_s), is_new=True)
            self._schedule(handle, "running", moment + boot_s)
        elif state == "running":
            self._storage.run(
                "UPDATE servers SET launched = coalesce(launched, ?) WHERE tenancy = ? AND name = ?",
                (moment, handle.tenancy, handle.name),
            )

    def _record_boot(self, handle: Handle, boot: Boot, *, is_new: bool) -> None:
        key = (handle.tenancy, handle.name)
        row = self._storage.row("SELECT boots FROM servers WHERE tenancy = ? AND name = ?", key)
        before: Sequence[Boot] = () if row is None or is_new else _decode_boots(row[0])
        boots = (*before, boot)[-_RETAINED_BOOTS:]
        self._storage.run("UPDATE servers SET boots = ? WHERE tenancy = ? AND name = ?", (encode(boots), *key))

    def _advance(self, now: float, most: int) -> int:
        rows = self._storage.rows(_DUE, (now, most))
        for tenancy, name, state, due, boot_s in rows:
            self._enter(Handle(tenancy, name), state, due, boot_s)
        return len(rows)


def _initial_state(now: float, queue_s: float, boot_s: float) -> tuple[CloudServerState, Next | None, float | None]:
    """Return a new server's state, its next state, and when that is due."""
    if queue_s:
        return "queued", "building", now + queue_s
    return ("building", "running", now + boot_s) if boot_s else ("running", None, None)


def _server(row: tuple[Any, ...]) -> CloudServer:
    _, tenancy, name, version, id_, state, created, launched, flavor, image, rebuilds, port, host, fault = row
    return CloudServer(
        handle=Handle(tenancy, name),
        id=id_,
        state=state,
        flavor=flavor,
        image=image,
        rebuilds=rebuilds,
        port=port,
        version=version,
        created=as_datetime(created),
        launched=None if launched is None else as_datetime(launched),
        host=host,
        fault=fault,
    )
