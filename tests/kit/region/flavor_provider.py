"""A provider that only sells: flavors and ways out, as slow and as ill as a test wants."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from remuda.kernel.clock import Clock
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudGpu
from remuda.providers.contract.provider import Provider

GIB = 1 << 30
SMALL = CloudFlavor(
    id="f1000000-0000-4000-8000-000000000001", name="small", cpus=2, memory_bytes=4 * GIB, disk_bytes=20 * 10**9
)
LARGE = CloudFlavor(
    id="f1000000-0000-4000-8000-000000000002",
    name="large",
    cpus=16,
    memory_bytes=64 * GIB + 1,
    disk_bytes=100 * 10**9 + 1,
    architecture="aarch64",
    cpu_family="Altra",
    free=3,
)
GRAPHIC = CloudFlavor(
    id="f1000000-0000-4000-8000-000000000003",
    name="graphic",
    cpus=8,
    memory_bytes=32 * GIB,
    disk_bytes=10**11,
    gpu=CloudGpu(vendor="NVIDIA", model="L4", memory_bytes=24 * GIB, physical_count=1, logical_count=2),
    free=0,
)
PINNED = CloudFlavor(
    id="f1000000-0000-4000-8000-000000000004",
    name="whole",
    cpus=64,
    memory_bytes=512 * GIB,
    disk_bytes=10**12,
    is_baremetal=True,
    is_pinned_only=True,
)
WAYS_OUT = (CloudExternalNetwork(id="e2", name="wide"), CloudExternalNetwork(id="e1", name="narrow"))


@dataclass
class FlavorProvider:
    """What it sells, and how it is doing."""

    clock: Clock
    stock: Sequence[CloudFlavor] = (GRAPHIC, PINNED, LARGE, SMALL)
    takes_s: float = 0.0
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    async def flavors(self) -> Sequence[CloudFlavor]:
        stock = self.stock
        await self._serve("flavors")
        return stock

    async def external_networks(self) -> Sequence[CloudExternalNetwork]:
        await self._serve("external_networks")
        return WAYS_OUT

    async def _serve(self, verb: str) -> None:
        self.asked.append(verb)
        error = self.error
        await self.clock.sleep(self.takes_s)
        if error is not None:
            raise error

    @property
    def provider(self) -> Provider:
        """It, with ways out."""
        return Provider(type="simulated", catalogue=self, external_networks=self)

    @property
    def bare(self) -> Provider:
        """It, with flavors alone."""
        return Provider(type="kubernetes", catalogue=self)
