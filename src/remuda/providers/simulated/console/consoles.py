"""Consoles."""

import hashlib

from remuda.kernel import encoding as base64url
from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle
from remuda.providers.contract.errors import WrongState
from remuda.providers.contract.servers import ServerState
from remuda.providers.simulated.cloud_init import apply
from remuda.providers.simulated.console.bootlog import Machine, boot_log, power_off_log
from remuda.providers.simulated.ground import Ground
from remuda.providers.simulated.images import SimImages
from remuda.providers.simulated.ports import SimPorts
from remuda.providers.simulated.server_states import Life, Lives
from remuda.providers.simulated.tenancies import SimTenancies
from remuda.providers.simulated.times import as_datetime

_TOKEN_BYTES = 24
_VISIBLE: frozenset[ServerState] = frozenset({"building", "running", "stopping", "rebuilding"})
_OFF: frozenset[ServerState] = frozenset({"stopped", "failed", "removing"})
_KERNEL = "6.8.0-48-generic"


class SimConsoles:
    """Lets one see servers."""

    def __init__(
        self, ground: Ground, *, lives: Lives, images: SimImages, ports: SimPorts, tenancies: SimTenancies
    ) -> None:
        self._storage, self._desk, self._randomness = ground.storage, ground.desk, ground.randomness
        self._catalogue = ground.catalogue
        self._lives, self._images, self._ports, self._tenancies = lives, images, ports, tenancies

    async def open_console(self, handle: Handle) -> str:
        """Return an address at which a browser sees the screen, for a while; WrongState if there is none to see."""
        return await self._desk.change("open_console", lambda: self._open(handle))

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Return what a server wrote to its console, the last lines of it."""
        written = await self._desk.look("console_output", lambda: self._written(handle))
        shown = written if lines is None else written[max(0, len(written) - lines) :]
        return "".join(f"{line}\n" for line in shown)

    def seen_with(self, token: str, *, server: str | None = None) -> Handle:
        """Return the server whose screen a token of `open_console` shows, or raise NotFound once it is too old.

        `server` is whose it is to be, as the address says.
        """
        row = self._storage.row(
            "SELECT tenancy, name, servers.id FROM consoles JOIN servers ON servers.id = consoles.server "
            "WHERE digest = ? AND until > ?",
            (_digest(token), self._storage.now()),
        )
        if row is None or server not in {None, row[2]}:
            raise NotFound("console", "of this address")
        return Handle(*row[:2])

    def _open(self, handle: Handle) -> str:
        server = self._lives.get(handle)
        if server.state not in _VISIBLE:
            raise WrongState("server", handle.name, state=server.state)
        token = base64url.encode(self._randomness.token_bytes(_TOKEN_BYTES))
        now = self._storage.now()
        self._storage.run("DELETE FROM consoles WHERE until <= ?", (now,))
        self._storage.run(
            "INSERT INTO consoles VALUES (?, ?, ?)", (_digest(token), server.id, now + self._catalogue.times.console_s)
        )
        return f"{self._catalogue.console_url}/{self._catalogue.name}/{server.id}?token={token}"

    def _written(self, handle: Handle) -> list[str]:
        life, now = self._lives.life(handle), self._storage.now()
        machine = self._machine(life)
        lines: list[str] = []
        for began, takes_s in life.boots:
            began_at = as_datetime(began)
            lines.extend(boot_log(machine, began_at, takes_s=takes_s, elapsed_s=now - began))
        if life.boots and life.server.state in _OFF and life.server.launched:
            lines.extend(power_off_log())
        return lines

    def _machine(self, life: Life) -> Machine:
        spec, server = life.spec, life.server
        port = self._ports.read(Handle(spec.handle.tenancy, spec.port))
        tenancy = self._tenancies.read(spec.handle.tenancy) if spec.has_tenancy_key else None
        return Machine(
            hostname=spec.hostname,
            kernel=self._catalogue.kernels.get(server.image, _KERNEL),
            flavor=self._catalogue.flavor(server.flavor),
            image=self._images.read(server.image),
            address=port.spec.address if port else "",
            mac=port.spec.mac if port else "",
            key_seed=f"{server.id} {server.image}",
            applied=apply(spec.user_data),
            tenancy_key=tenancy.public_key if tenancy else "",
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
