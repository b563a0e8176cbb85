"""What brings images to their provider, one look in each pass; the way there is a transfer's (`transfers`).

::

    it is not there  →  a transfer of it  →  the provider has it  →  it is ready  →  we forget about it

Whoever comes back after a crash looks for the image by its id first: the provider has it, or it is fetched anew. What
is wrong with the content is so for good. Trouble on the way may pass, and it is tried again a few times. Either way the
import stays `failed` until somebody deletes it, and its condition says why.

Once an image is ready it is the provider's, and ours no more: what we know of it goes, with the address that it came
from, as soon as nobody can have an older list of the provider's.

The controller of images on their way, and what wakes it: a change of one of them, or of its transfer.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from typing import Any

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import RemudaError, Unavailable
from remuda.outbound.addresses import AddressPolicy, SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from remuda.providers.contract.catalogue import CloudImage
from remuda.providers.contract.common import InUse
from remuda.providers.proxy import UPLOAD_S, image_key
from remuda.quota.reservation import RECHECK_S
from remuda.quota.sagas import roll_back_create
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Lifecycle, LifecycleSettings, Outcome
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.status import AVAILABLE
from remuda.region.catalogue.provider_registry import Cloud, Clouds, need
from remuda.region.deletion import until_gone
from remuda.region.images.rules import to_cloud
from remuda.region.images.transfer import ImageFetcher, Limits, Transfer, Transfers
from remuda.region.kinds.images import ImageImport
from remuda.region.settings import RegionSettings
from remuda.resources.conventions import CONTROLLER_FINALIZER, region_of
from remuda.resources.crud import exists
from remuda.store.contract import Store

KEPT = timedelta(seconds=60)
"""How long a ready image is remembered: longer than any process keeps what its provider said."""

_PROGRESS_S = 10.0  # so often it is written down how much has come
_UNEXPLAINED = "it could not be brought to the provider"
_LOST = Unavailable("The provider took it and does not have it: import it again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageController:
    """Looks after images on their way."""

    store: Store
    clock: Clock
    clouds: Clouds
    transfers: Transfers
    attempts: int

    async def provision(self, image: ImageImport, run: ReconcileContext) -> Result | Outcome[ImageImport]:
        """Bring an image one step nearer to being there."""
        if image.status.state == "ready":
            return await self._forget(image, run)
        if image.status.state == "failed":
            return _still_failed(image)
        cloud = await self.clouds.get(region_of(image))
        found = await need(cloud.provider.images).find_image(image.name)
        if found is not None:
            cloud.forget_images()
            return self._arrived(image, found, cloud, run)
        transfer = self.transfers.find(image.name)
        if transfer is None:
            return self._begin(image, cloud, run)
        if not transfer.has_ended:
            return _on_its_way(image, transfer, cloud)
        return self._ended(image, transfer, cloud, run)

    async def deprovision(self, image: ImageImport, run: ReconcileContext) -> Result:
        """Break off what is on its way, and remove what has arrived."""
        cloud = await self.clouds.get(region_of(image))
        if not self.transfers.close_now(image.name) or cloud.calls.is_unknown(image_key(image.name)):
            run.acted = True
            return Requeue(RECHECK_S, "Deprovisioning", "its transfer is being broken off")
        images = need(cloud.provider.images)
        try:
            left = await until_gone(
                image.name, images.find_image, images.remove_image, cloud, key=image_key(image.name)
            )
        except InUse:
            return Blocked("InUse", "a server is made of it")
        cloud.forget_images()
        if left is None:
            self.transfers.forget(image.name)
        else:
            run.acted = True
        return left or Done()

    def _begin(self, image: ImageImport, cloud: Cloud, run: ReconcileContext) -> Result | Outcome[ImageImport]:
        if cloud.calls.is_unknown(image_key(image.name)):
            return Requeue(RECHECK_S, message="an earlier call to the provider has not ended")
        run.acted = True
        is_wanted = partial(exists, self.store, ImageImport, image.name, marked=False)
        self.transfers.begin(need(cloud.provider.images), to_cloud(image), image.spec.uri, is_wanted)
        return Requeue(cloud.wait_s, message="it waits for its turn to be fetched")

    def _arrived(
        self, image: ImageImport, found: CloudImage, cloud: Cloud, run: ReconcileContext
    ) -> Outcome[ImageImport]:
        if found.state == "failed":
            return self._give_up(image, "the provider could not make an image of it", run)
        if found.state != "ready":
            return Outcome(Requeue(cloud.wait_s, message=f"it is {found.state}"), _with(image, state="creating"))
        arrived, facts = _with(image, state="ready"), {}
        transfer = self.transfers.find(image.name)
        if transfer is not None and transfer.sha256:
            facts = {"size": transfer.received, "sha256": transfer.sha256}
            arrived = _with(arrived, received=transfer.received, **facts)
        self.transfers.forget(image.name)
        run.requeue_after(KEPT.total_seconds())
        return Outcome(Done(), arrived, [run.event(image, "Imported", **facts)])

    def _ended(
        self, image: ImageImport, transfer: Transfer, cloud: Cloud, run: ReconcileContext
    ) -> Result | Outcome[ImageImport]:
        """Look at a transfer that has ended, of an image that is not to be seen."""
        trouble = transfer.trouble or _LOST
        failures, why = image.status.failures + 1, _said(trouble)
        is_last = failures >= self.attempts or not trouble.retry
        may_be_there = transfer.trouble is None or (is_last and trouble.retry)
        if may_be_there and not cloud.absences.record_missing(image.name):
            return Requeue(cloud.absences.delay_s, message="looking whether the provider has it after all")
        cloud.absences.clear(image.name)
        if is_last:
            return self._give_up(image, why, run)
        self.transfers.forget(image.name)
        interrupted = _with(image, state="pending", received=0, failures=failures)
        entry = run.event(image, "Interrupted", failures=failures, why=why)
        return Outcome(Failed("ImportInterrupted", f"{why}; it is tried again"), interrupted, [entry])

    def _give_up(self, image: ImageImport, why: str, run: ReconcileContext) -> Outcome[ImageImport]:
        self.transfers.forget(image.name)
        failed = _with(image, state="failed")
        return Outcome(Blocked("Errored", why), failed, [run.event(image, "ImportFailed", why=why)])

    async def _forget(self, image: ImageImport, run: ReconcileContext) -> Result:
        """Let go of an image that arrived a while ago; it stays at the provider."""
        available = find_condition(image.status.conditions, AVAILABLE)
        age = timedelta(0) if available is None else self.clock.now() - available.last_transition_time
        if abs(age) < KEPT:  # one that is to arrive in hours arrived before the clock was set back
            run.requeue_after((KEPT - age).total_seconds())
        else:
            run.acted = True
            await roll_back_create(self.store, ImageImport, image.name, _is_settled)
        return Done()


def _is_settled(image: ImageImport) -> bool:
    return image.status.state == "ready" and not image.is_deleting


def _still_failed(image: ImageImport) -> Result:
    """Say again what was said when it failed."""
    said = find_condition(image.status.conditions, AVAILABLE)
    return Blocked("Errored", _UNEXPLAINED) if said is None else Blocked(said.reason, said.message)


def _on_its_way(image: ImageImport, transfer: Transfer, cloud: Cloud) -> Outcome[ImageImport]:
    if not transfer.is_running:
        return Outcome(Requeue(cloud.wait_s, message="it waits for its turn to be fetched"), image)
    seen = _with(image, state="creating", received=transfer.received)
    return Outcome(Requeue(_PROGRESS_S, message="it is being fetched"), seen)


def _said(trouble: RemudaError) -> str:
    """Return what is told of trouble; sentences of ours and of providers hold no address and no content."""
    return trouble.message.rstrip(".") or _UNEXPLAINED


def _with(image: ImageImport, **changes: object) -> ImageImport:
    return replace(image, status=replace(image.status, **changes))


ATTEMPTS = 5
"""How often an image is fetched at most, if trouble on the way is all that keeps it from coming."""
AT_ONCE = 4
"""How many are fetched at once: each holds a call to its provider for as long."""

_GIB = 2**30
_MARGIN_S = 300.0  # the provider needs some time of its own before it gives up on the content


def fetcher_of(settings: RegionSettings, source: GuardedFetcher | None = None) -> ImageFetcher:
    """Return what fetches images, from where an operator lets it unless another source is given."""
    reach = AddressPolicy(tuple(ip_network(each) for each in settings.image_targets))
    limits = Limits(longest=settings.image_size_gib * _GIB, total_s=UPLOAD_S - _MARGIN_S)
    return ImageFetcher(source=source or GuardedFetcher(resolve=SystemResolver(), policy=reach), limits=limits)


class ImageDriver(Controller):
    """The controller of images on their way. It has their transfers, which go on between its passes."""

    def __init__(self, lifecycle: Lifecycle[ImageImport], transfers: Transfers, **given: Any) -> None:
        super().__init__("imageimports", lifecycle, kind=ImageImport, **given)
        self.transfers = transfers
        transfers.when_moved(self.enqueue)

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
    settings: ControllerSettings | None = None,
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
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        settings=LifecycleSettings(deadline_s=2 * UPLOAD_S),
    )
    return ImageDriver(lifecycle, transfers, ports=ports, settings=settings)
