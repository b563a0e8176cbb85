"""The controller of images on their way, and what wakes it: a change of one of them, or of its transfer."""

from ipaddress import ip_network
from typing import Any

from remuda.outbound.addresses import Reach, SystemResolver
from remuda.outbound.fetch import Guarded
from remuda.providers.proxy import UPLOAD_S
from remuda.reconcile.controller import Driver
from remuda.reconcile.lifecycle import Lifecycle, LifecycleSettings
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.images.controller import ImageController
from remuda.region.images.fetching import ImageFetcher, Limits
from remuda.region.images.transfer import Transfers
from remuda.region.kinds.images import ImageImport
from remuda.region.settings import RegionSettings
from remuda.resources.conventions import IN_CARE

ATTEMPTS = 5
"""How often an image is fetched at most, if trouble on the way is all that keeps it from coming."""
AT_ONCE = 4
"""How many are fetched at once: each holds a call to its provider for as long."""

_GIB = 2**30
_MARGIN_S = 300.0  # the provider needs some time of its own before it gives up on the content


def fetcher_of(settings: RegionSettings, source: Guarded | None = None) -> ImageFetcher:
    """Return what fetches images, from where an operator lets it unless another source is given."""
    reach = Reach(tuple(ip_network(each) for each in settings.image_targets))
    limits = Limits(longest=settings.image_size_gib * _GIB, total_s=UPLOAD_S - _MARGIN_S)
    return ImageFetcher(source=source or Guarded(resolve=SystemResolver(), reach=reach), limits=limits)


class ImageDriver(Driver):
    """The controller of images on their way. It has their transfers, which go on between its passes."""

    def __init__(self, lifecycle: Lifecycle[ImageImport], transfers: Transfers, **given: Any) -> None:
        super().__init__("imageimports", lifecycle, kind=ImageImport, **given)
        self.transfers = transfers
        transfers.when_moved(self.wake)

    async def stop(self) -> None:
        """End, and break off all transfers."""
        await super().stop()
        await self.transfers.stop()


def driver(
    ports: ReconcilePorts,
    clouds: Clouds,
    fetcher: ImageFetcher,
    *,
    attempts: int = ATTEMPTS,
    at_once: int = AT_ONCE,
    settings: DriverSettings | None = None,
) -> ImageDriver:
    """Return the controller of images on their way."""
    transfers = Transfers(fetcher, most=at_once)
    images = ImageController(
        store=ports.store, clock=ports.clock, clouds=clouds, transfers=transfers, attempts=attempts
    )
    lifecycle = Lifecycle(
        ImageImport,
        provision=images.provision,
        deprovision=images.deprovision,
        finalizer=IN_CARE,
        ports=ports,
        settings=LifecycleSettings(deadline_s=2 * UPLOAD_S),
    )
    return ImageDriver(lifecycle, transfers, ports=ports, settings=settings)
