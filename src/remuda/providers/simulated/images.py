"""Images, flavors and external networks of the simulated cloud.

Images are those of the catalogue, uploads and snapshots. Only the size and digest of an upload are stored: nothing here
runs its bytes.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudImage, CloudImageSpec
from remuda.providers.contract.common import Handle, InUse, Rejected, WrongState
from remuda.providers.simulated.database import as_datetime
from remuda.providers.simulated.gateway import CloudContext
from remuda.providers.simulated.server_states import HostCapacity, ServerStateMachine

_GIB = 2**30
_COLUMNS = "SELECT document, size_gib, state, created FROM images"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CloudImageSpec).decode


class SimImages:
    """Images and snapshots of the simulated cloud."""

    def __init__(self, context: CloudContext, *, states: ServerStateMachine) -> None:
        self._storage, self._gateway, self._timers = context.storage, context.gateway, context.timers
        self._catalogue, self._states = context.catalogue, states
        self._gateway.stale_reads.readers["image"] = lambda handle: self.read(handle.name)
        self._timers.add("images", self._advance)

    async def images(self) -> Sequence[CloudImage]:
        found: list[CloudImage] = []
        async for part in self._gateway.pages("images", "image", self._page, lambda each: Handle("", each.id)):
            found.extend(part)
        return found

    async def find_image(self, image: str) -> CloudImage | None:
        return await self._gateway.find("find_image", "image", Handle("", image), lambda handle: self.read(handle.name))

    async def create_image(self, desired: CloudImageSpec, content: AsyncIterator[bytes]) -> CloudImage:
        """Create an image from a stream of bytes, or raise AlreadyExists. If it breaks off, no image remains."""
        self._check_new(desired)
        size, digest = 0, hashlib.sha256()
        async for chunk in content:
            size += len(chunk)
            digest.update(chunk)
        if not size:
            raise Rejected("an image cannot be empty")
        size_gib, sha256 = -(-size // _GIB), f"sha256:{digest.hexdigest()}"
        return await self._gateway.write(
            "create_image", lambda: self._create(desired, size_gib=size_gib, digest=sha256, takes_s=0.0)
        )

    async def remove_image(self, image: str) -> None:
        """Remove an image, or raise InUse; NotFound for one of the catalogue, which cannot be removed."""
        await self._gateway.write("remove_image", lambda: self._remove(image))

    async def snapshot_server(self, handle: Handle, desired: CloudImageSpec) -> CloudImage:
        """Start to create an image from a server's disk, or raise AlreadyExists."""
        return await self._gateway.write("snapshot_server", lambda: self._snapshot(handle, desired))

    def read(self, image: str) -> CloudImage | None:
        built_in = self._catalogue.image(image)
        if built_in is not None:
            return built_in
        row = self._storage.row(f"{_COLUMNS} WHERE id = ?", (image,))
        return None if row is None else _image(row)

    def _page(self, _position: Any) -> tuple[list[CloudImage], Any]:
        rows = self._storage.rows(f"{_COLUMNS} ORDER BY created, id")
        return [*self._catalogue.images, *map(_image, rows)], None

    def _check_new(self, desired: CloudImageSpec) -> None:
        if self.read(desired.id) is not None:
            raise AlreadyExists("image", desired.id)

    def _create(self, desired: CloudImageSpec, *, size_gib: int, digest: str, takes_s: float) -> CloudImage:
        self._check_new(desired)
        now, handle = self._storage.now(), Handle("", desired.id)
        then = ("creating", "ready", now + takes_s) if takes_s else ("ready", None, None)
        self._storage.record_change("image", handle)
        self._storage.run(
            "INSERT INTO images VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (desired.id, *then, now, size_gib, digest, _encode(desired)),
        )
        self._gateway.record_created("image", handle)
        if takes_s:
            self._timers.expect(now + takes_s)
        created = self.read(desired.id)
        assert created is not None, "it was inserted above"
        return created

    def _snapshot(self, handle: Handle, desired: CloudImageSpec) -> CloudImage:
        server = self._states.get(handle)
        if server.state not in {"running", "stopped", "suspended"}:
            raise WrongState("server", handle.name, state=server.state)
        source = self.read(server.image)
        size_gib = source.size_gib if source is not None else 1
        digest = hashlib.sha256(f"{server.id} {self._storage.now()}".encode()).hexdigest()
        takes_s = self._catalogue.times.snapshot_s
        return self._create(desired, size_gib=size_gib, digest=f"sha256:{digest}", takes_s=takes_s)

    def _remove(self, image: str) -> None:
        if self._catalogue.image(image) is not None:
            raise NotFound("image", image)
        if self._storage.has("SELECT 1 FROM servers WHERE image = ? LIMIT 1", (image,)):
            raise InUse("image", image)
        if self._storage.has("SELECT 1 FROM images WHERE id = ?", (image,)):
            self._storage.record_change("image", Handle("", image))
            self._storage.run("DELETE FROM images WHERE id = ?", (image,))

    def _advance(self, now: float, most: int) -> int:
        rows = self._storage.rows("SELECT id, next FROM images WHERE due <= ? ORDER BY due LIMIT ?", (now, most))
        for image, state in rows:
            self._storage.record_change("image", Handle("", image))
            self._storage.run("UPDATE images SET state = ?, next = NULL, due = NULL WHERE id = ?", (state, image))
        return len(rows)


def _image(row: tuple[Any, ...]) -> CloudImage:
    document, size_gib, state, created = row
    desired = _decode(document)
    return CloudImage(
        **{name: getattr(desired, name) for name in CloudImageSpec.__dataclass_fields__},
        size_gib=size_gib,
        state=state,
        created=as_datetime(created),
    )


class SimFlavors:
    """Flavors, with their remaining capacity, and external networks of the simulated cloud."""

    def __init__(self, context: CloudContext) -> None:
        self._gateway, self._catalogue = context.gateway, context.catalogue
        self._hosts = HostCapacity(context.storage)

    async def flavors(self) -> Sequence[CloudFlavor]:
        return await self._gateway.read(
            "flavors", lambda: [self._hosts.with_free_capacity(each) for each in self._catalogue.flavors]
        )

    async def external_networks(self) -> Sequence[CloudExternalNetwork]:
        return await self._gateway.read("external_networks", lambda: self._catalogue.external_networks)
