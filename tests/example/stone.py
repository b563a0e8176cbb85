"""A pasture that outlives the process: one file for each mount that grazes there.

A file appears, changes and goes as a whole, so a process that is killed has told the pasture something or it has not.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists
from remuda.kernel.randomness import Randomness
from tests.example.pasture import Grazing


class StonePasture:
    """The pasture in a directory. Whoever has the directory sees the same mounts."""

    def __init__(self, directory: Path, clock: Clock, randomness: Randomness, *, latency_s: float = 0.005) -> None:
        self._directory, self._clock, self._randomness, self._latency_s = directory, clock, randomness, latency_s
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def mounts(self) -> Mapping[str, Grazing]:
        """All that graze, by name."""
        files = [path for path in self._directory.iterdir() if not path.name.startswith("new-")]
        return {path.name: msgspec.json.decode(path.read_bytes(), type=Grazing) for path in files}

    async def turn_out(self, name: str, breed: str, paddock: str) -> Grazing:
        await self._wait()
        grazing = Grazing(f"grazing-{self._randomness.token_bytes(4).hex()}", name, breed, paddock)
        new = self._written(grazing)
        try:
            os.link(new, self._directory / name)
        except FileExistsError:
            raise AlreadyExists("grazing", name) from None
        finally:
            new.unlink()
        await self._wait()
        return grazing

    async def move(self, name: str, paddock: str) -> None:
        await self._wait()
        found = self.mounts.get(name)
        if found is not None:
            self._written(Grazing(found.id, name, found.breed, paddock)).replace(self._directory / name)
        await self._wait()

    async def bring_in(self, name: str) -> None:
        await self._wait()
        (self._directory / name).unlink(missing_ok=True)
        await self._wait()

    async def find(self, name: str) -> Grazing | None:
        await self._wait()
        return self.mounts.get(name)

    async def list(self) -> Sequence[Grazing]:
        await self._wait()
        return [*self.mounts.values()]

    def _written(self, grazing: Grazing) -> Path:
        new = self._directory / f"new-{self._randomness.token_bytes(8).hex()}"
        new.write_bytes(msgspec.json.encode(grazing))
        return new

    async def _wait(self) -> None:
        await self._clock.sleep(self._randomness.uniform(0, self._latency_s))
