"""Controller of image imports. Transfers run between its reconciles (`transfer`).

After a crash the controller first looks for the image at the provider, and else fetches it again. Invalid content fails
the import at once; other errors are retried a few times. A failed import stays `failed` until a client deletes it.

A ready image belongs to the provider. Its import is deleted, with the address of its source, when no process can have
an older cached list of the provider.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_network

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import RemudaError, Unavailable
from remuda.outbound.addresses import AddressPolicy, SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from remuda.providers.contract.catalogue import CloudImage
from remuda.providers.contract.common import InUse
from remuda.providers.proxy import UPLOAD_S, image_key
from remuda.quota.sagas import roll_back_create
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import LifecycleSettings, Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import RECHECK_S, Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.status import AVAILABLE
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider, require
from remuda.region.images.rules import cloud_image_spec
from remuda.region.images.transfer import ImageFetcher, ImageLimits, Transfer, Transfers
from remuda.region.kinds.images import ImageImport
from remuda.region.settings import RegionSettings
from remuda.resources.conventions import CONTROLLER_FINALIZER, region_of
from remuda.resources.crud import exists
from remuda.store.contract import Store

READY_RETENTION = timedelta(seconds=60)
"""Time for which a ready import is kept: longer than a TTL cache returns a fresh list."""

_PROGRESS_S = 10.0  # interval at which the received bytes are stored
_QUEUED = "the transfer is queued"
_UNEXPLAINED = "the image could not be uploaded to the provider"
_LOST = Unavailable("The provider accepted the image and does not have it. Import it again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageController:
    """Reconcile functions of image imports."""

    store: Store
    clock: Clock
    providers: ProviderRegistry
    transfers: Transfers
    attempts: int

    async def provision(self, image: ImageImport, context: ReconcileContext) -> Result | Outcome[ImageImport]:
        if image.status.state == "ready":
            return await self._delete_ready(image, context)
        if image.status.state == "failed":
            return _still_failed(image)
        cloud = await self.providers.get(region_of(image))
        found = await require(cloud.provider.images).find_image(image.name)
        if found is not None:
            cloud.invalidate_images()
            return self._uploaded(image, found, cloud, context)
        transfer = self.transfers.find(image.name)
        if transfer is None:
            return self._start(image, cloud, context)
        if not transfer.is_done:
            return _in_progress(image, transfer, cloud)
        return self._finish(image, transfer, cloud, context)

    async def deprovision(self, image: ImageImport, context: ReconcileContext) -> Result:
        """Cancel the transfer, and delete the image at the provider."""
        cloud = await self.providers.get(region_of(image))
        if not self.transfers.cancel(image.name) or cloud.calls.is_unknown(image_key(image.name)):
            context.acted = True
            return Requeue(RECHECK_S, "Deprovisioning", "the transfer is being cancelled")
        images = require(cloud.provider.images)
        try:
            waiting = await cloud.delete(image.name, images.find_image, images.remove_image, key=image_key(image.name))
        except InUse:
            return Blocked("InUse", "a server was created from the image")
        cloud.invalidate_images()
        if waiting is None:
            self.transfers.forget(image.name)
        else:
            context.acted = True
        return waiting or Done()

    def _start(
        self, image: ImageImport, cloud: RegionProvider, context: ReconcileContext
    ) -> Result | Outcome[ImageImport]:
        if cloud.calls.is_unknown(image_key(image.name)):
            return Requeue(RECHECK_S, message="an earlier call to the provider is still running")
        context.acted = True
        is_needed = partial(exists, self.store, ImageImport, image.name, include_deleting=False)
        self.transfers.start(require(cloud.provider.images), cloud_image_spec(image), image.spec.uri, is_needed)
        return Requeue(cloud.wait_s, message=_QUEUED)

    def _uploaded(
        self, image: ImageImport, found: CloudImage, cloud: RegionProvider, context: ReconcileContext
    ) -> Outcome[ImageImport]:
        if found.state == "failed":
            return self._fail(image, "the provider could not create the image", context)
        if found.state != "ready":
            waiting = Requeue(cloud.wait_s, message=f"the image is {found.state}")
            return Outcome(waiting, _with(image, state="creating"))
        ready, facts = _with(image, state="ready"), {}
        transfer = self.transfers.find(image.name)
        if transfer is not None and transfer.sha256:
            facts = {"size": transfer.received, "sha256": transfer.sha256}
            ready = _with(ready, received=transfer.received, **facts)
        self.transfers.forget(image.name)
        context.requeue_after(READY_RETENTION.total_seconds())
        return Outcome(Done(), ready, [context.event(image, "Imported", **facts)])

    def _finish(
        self, image: ImageImport, transfer: Transfer, cloud: RegionProvider, context: ReconcileContext
    ) -> Result | Outcome[ImageImport]:
        """Handle a transfer that is done while the image is not at the provider."""
        error = transfer.error or _LOST
        failures, reason = image.status.failures + 1, _message(error)
        is_last = failures >= self.attempts or not error.retry
        may_exist = transfer.error is None or (is_last and error.retry)
        if may_exist and not cloud.absence.record_missing(image.name):
            return Requeue(cloud.absence.delay_s, message="confirming that the provider does not have it")
        cloud.absence.clear(image.name)
        if is_last:
            return self._fail(image, reason, context)
        self.transfers.forget(image.name)
        interrupted = _with(image, state="pending", received=0, failures=failures)
        event = context.event(image, "Interrupted", failures=failures, reason=reason)
        return Outcome(Failed("ImportInterrupted", f"{reason}; the import is retried"), interrupted, [event])

    def _fail(self, image: ImageImport, reason: str, context: ReconcileContext) -> Outcome[ImageImport]:
        self.transfers.forget(image.name)
        failed = _with(image, state="failed")
        return Outcome(Blocked("Errored", reason), failed, [context.event(image, "ImportFailed", reason=reason)])

    async def _delete_ready(self, image: ImageImport, context: ReconcileContext) -> Result:
        """Delete the import of an image that has been ready for a while; the image stays at the provider."""
        available = find_condition(image.status.conditions, AVAILABLE)
        age = timedelta(0) if available is None else self.clock.now() - available.last_transition_time
        if abs(age) < READY_RETENTION:  # a time far in the future is from before the clock was set back
            context.requeue_after((READY_RETENTION - age).total_seconds())
        else:
            context.acted = True
            await roll_back_create(self.store, ImageImport, image.name, _is_settled)
        return Done()


def _is_settled(image: ImageImport) -> bool:
    return image.status.state == "ready" and not image.is_deleting


def _still_failed(image: ImageImport) -> Result:
    failure = find_condition(image.status.conditions, AVAILABLE)
    return Blocked("Errored", _UNEXPLAINED) if failure is None else Blocked(failure.reason, failure.message)


def _in_progress(image: ImageImport, transfer: Transfer, cloud: RegionProvider) -> Outcome[ImageImport]:
    if not transfer.is_running:
        return Outcome(Requeue(cloud.wait_s, message=_QUEUED), image)
    progressed = _with(image, state="creating", received=transfer.received)
    return Outcome(Requeue(_PROGRESS_S, message="the image is being transferred"), progressed)


def _message(error: RemudaError) -> str:
    """Return the message of an error, which has no address and no content."""
    return error.message.rstrip(".") or _UNEXPLAINED


def _with(image: ImageImport, **changes: object) -> ImageImport:
    return replace(image, status=replace(image.status, **changes))


ATTEMPTS = 5
"""Transfers of an image before its import fails."""

_GIB = 2**30
_MARGIN_S = 300.0  # the provider needs time after the last byte


def new_fetcher(settings: RegionSettings, source: GuardedFetcher | None = None) -> ImageFetcher:
    """Return the fetcher of images, with the permitted targets of the settings unless a source is given."""
    reach = AddressPolicy(tuple(ip_network(each) for each in settings.image_targets))
    limits = ImageLimits(max_bytes=settings.image_size_gib * _GIB, total_s=UPLOAD_S - _MARGIN_S)
    return ImageFetcher(source=source or GuardedFetcher(resolve=SystemResolver(), reach=reach), limits=limits)


def controllers(
    ports: ReconcilePorts,
    providers: ProviderRegistry,
    transfers: Transfers,
    *,
    attempts: int = ATTEMPTS,
    settings: ControllerSettings | None = None,
) -> Sequence[Controller]:
    """Return the controllers of image imports, which the progress of their transfers enqueues."""
    images = ImageController(
        store=ports.store, clock=ports.clock, providers=providers, transfers=transfers, attempts=attempts
    )
    controller = lifecycle_controller(
        "imageimports",
        ImageImport,
        provision=images.provision,
        deprovision=images.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        settings=settings,
        lifecycle_settings=LifecycleSettings(deadline_s=2 * UPLOAD_S),
    )
    transfers.add_listener(controller.enqueue)
    return (controller,)
