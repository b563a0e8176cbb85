"""Servers of the simulated cloud."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.kernel.ids import random_id
from remuda.providers.contract.catalogue import CloudFlavor, CloudImage
from remuda.providers.contract.common import Handle, InUse, Rejected, WrongState
from remuda.providers.contract.servers import CloudServer, CloudServerSpec, CloudServerState, CloudServerVersion
from remuda.providers.simulated.gateway import PAGE_SIZE, CloudContext
from remuda.providers.simulated.images import SimImages
from remuda.providers.simulated.networks import SimPorts
from remuda.providers.simulated.server_states import Next, ServerStateMachine

_VERSIONS = "SELECT tenancy, name, version, number FROM servers WHERE number > ? ORDER BY number LIMIT ?"
_GIB = 2**30


class SimServers:
    """Servers of the simulated cloud."""

    def __init__(
        self, context: CloudContext, *, states: ServerStateMachine, ports: SimPorts, images: SimImages
    ) -> None:
        self._storage, self._gateway, self._randomness = context.storage, context.gateway, context.randomness
        self._sealer = context.sealer
        self._catalogue, self._times = context.catalogue, context.catalogue.times
        self._states, self._ports, self._images = states, ports, images
        self._gateway.stale_reads.readers["server"] = states.read

    async def create_server(self, desired: CloudServerSpec) -> CloudServer:
        """Create a server, or raise AlreadyExists, NoCapacity, or InUse if another server has its port."""
        return await self._gateway.write("create_server", lambda: self._create(desired))

    async def find_server(self, handle: Handle) -> CloudServer | None:
        return await self._gateway.find("find_server", "server", handle, self._states.read)

    async def remove_server(self, handle: Handle) -> None:
        """Remove a server; its port stays, and is in use until the server has disappeared."""
        await self._gateway.write("remove_server", lambda: self._remove(handle))

    async def start_server(self, handle: Handle) -> None:
        """Start a stopped server, or raise WrongState."""
        await self._act("start_server", handle, {"stopped"}, self._start)

    async def stop_server(self, handle: Handle) -> None:
        """Stop a running server, or raise WrongState."""
        await self._act("stop_server", handle, {"running"}, self._stop)

    async def reboot_server(self, handle: Handle, *, hard: bool) -> None:
        """Reboot a running server, or raise WrongState."""
        # Both kinds of reboot look the same here: the console's earlier output is kept.
        await self._act("reboot_server", handle, {"running", "suspended"} if hard else {"running"}, self._start)

    async def rebuild_server(
        self, handle: Handle, image: str, user_data: bytes | None = None, rebuilds: int | None = None
    ) -> None:
        """Replace a server's root disk by that of an image."""
        await self._gateway.write("rebuild_server", lambda: self._rebuild(handle, image, user_data, rebuilds))

    def server_versions(self) -> AsyncIterator[Sequence[CloudServerVersion]]:
        return self._gateway.pages(
            "server_versions",
            "server",
            self._page,
            lambda each: each.handle,
            lambda each: CloudServerVersion(each.handle, each.version),
        )

    def _page(self, position: Any) -> tuple[list[CloudServerVersion], Any]:
        rows = self._storage.rows(_VERSIONS, (position or 0, PAGE_SIZE))
        versions = [CloudServerVersion(Handle(tenancy, name), version) for tenancy, name, version, _ in rows]
        return versions, rows[-1][3] if len(rows) == PAGE_SIZE else None

    async def _act(
        self, method: str, handle: Handle, states: Collection[CloudServerState], effect: Callable[[Handle], None]
    ) -> None:
        def act() -> None:
            self._check_state(self._states.get(handle), states)
            effect(handle)

        await self._gateway.write(method, act)

    def _create(self, desired: CloudServerSpec) -> CloudServer:
        if self._states.read(desired.handle) is not None:
            raise AlreadyExists("server", desired.handle.name)
        attached = self._ports.server_of(Handle(desired.handle.tenancy, desired.port))
        if attached is None:
            raise NotFound("port", desired.port)
        if attached:
            raise InUse("port", desired.port)
        flavor = self._catalogue.flavor(desired.flavor)
        if flavor is None:
            raise NotFound("flavor", desired.flavor)
        _check_fit(flavor, self._ready_image(desired.image), is_pinned=bool(desired.host))
        queue_s = self._times.queue_s if flavor.is_baremetal else 0.0
        created = self._states.create(
            desired, random_id(self._randomness), sealer=self._sealer, queue_s=queue_s, boot_s=self._boot_s()
        )
        self._gateway.record_created("server", desired.handle)
        return created

    def _boot_s(self) -> float:
        times = self._times
        return times.boot_s * (1 + times.boot_jitter * self._randomness.uniform(-1, 1)) if times.boot_s else 0.0

    def _remove(self, handle: Handle) -> None:
        server = self._states.read(handle)
        if server is not None and server.state != "removing":
            self._states.transition(handle, "removing", "gone", takes_s=self._times.remove_s)

    def _start(self, handle: Handle) -> None:
        self._states.enter(handle, "running")
        self._states.record_boot(handle, takes_s=self._boot_s())

    def _stop(self, handle: Handle) -> None:
        self._states.transition(handle, "stopping", "stopped", takes_s=self._times.stop_s)

    def _rebuild(self, handle: Handle, image: str, user_data: bytes | None, rebuilds: int | None) -> None:
        server = self._states.get(handle)
        self._check_state(server, {"running", "stopped", "failed"})
        if server.launched is None:
            raise WrongState("server", handle.name, state=server.state)
        found, flavor = self._ready_image(image), self._catalogue.flavor(server.flavor)
        if flavor is not None:  # a server of a flavor that is no longer offered keeps it
            _check_fit(flavor, found, is_pinned=True)
        last: Next = "stopped" if server.state == "stopped" else "running"
        self._states.transition(handle, "rebuilding", last, takes_s=self._times.rebuild_s)
        self._states.set_image(handle, image, server.rebuilds if rebuilds is None else rebuilds)
        if user_data is not None:
            self._states.set_user_data(handle, user_data, self._sealer)
        self._states.record_boot(handle, takes_s=self._times.rebuild_s, is_new=True)

    def _ready_image(self, image: str) -> CloudImage:
        found = self._images.read(image)
        if found is None:
            raise NotFound("image", image)
        if found.state != "ready":
            raise WrongState("image", image, state=found.state)
        return found

    @staticmethod
    def _check_state(server: CloudServer, states: Collection[CloudServerState]) -> None:
        if server.state not in states:
            raise WrongState("server", server.handle.name, state=server.state)


def _check_fit(flavor: CloudFlavor, image: CloudImage, *, is_pinned: bool) -> None:
    if flavor.architecture != image.architecture:
        raise Rejected("the image is for a different architecture than the flavor")
    if flavor.disk_bytes < image.size_gib * _GIB:
        raise Rejected("the image is larger than the flavor's disk")
    if image.virtualization not in {"any", "baremetal" if flavor.is_baremetal else "virtualized"}:
        raise Rejected("the image does not run on this kind of flavor")
    if flavor.is_pinned_only and not is_pinned:
        raise Rejected("a server of this flavor must name its host")
