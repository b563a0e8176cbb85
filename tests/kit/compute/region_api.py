"""Networks and servers as region shows them, and a region API of which some methods are replaced."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.compute.ports import RegionClient
from remuda.region.api import RegionApi
from remuda.region.networks.schema import NetworkRead, NetworkSpecWire, NetworkStatusRead, ReservationsWire
from remuda.region.servers.schema import ServerRead, ServerSpecWire, ServerStatusRead
from remuda.resources.schema import Detail, ProjectMetadataRead, TagWire

_CREATED = datetime(2026, 3, 4, 11, 0, tzinfo=UTC)


def metadata(id_: str, name: str, *, organization: str = "acme", project: str = "web", **more: Any) -> Any:
    given: dict[str, Any] = {
        "provisioning_status": "provisioned",
        "health_status": "healthy",
        "creation_time": _CREATED,
    }
    return ProjectMetadataRead(id=id_, name=name, organization_id=organization, project_id=project, **given | more)


def network_read(
    id_: str = "net", name: str = "front", *, region: str = "north", is_deleting: bool = False, **project: str
) -> NetworkRead:
    return NetworkRead(
        metadata=metadata(id_, name, deletion_time=_CREATED if is_deleting else None, **project),
        spec=NetworkSpecWire(dns_nameservers=()),
        status=NetworkStatusRead(
            region_id=region, prefix="10.0.0.0/24", reservations=ReservationsWire(prefix_length=25)
        ),
    )


def server_read(
    id_: str = "one",
    *,
    instance: str = "",
    uid: str = "",
    reason: str = "",
    message: str = "",
    provisioning: str = "provisioned",
    is_deleting: bool = False,
    flavor: str = "small",
    image: str = "linux",
    **status: Any,
) -> ServerRead:
    tags = {name: value for name, value in ((INSTANCE_TAG, instance), (INCARNATION, uid)) if value}
    return ServerRead(
        metadata=metadata(
            id_,
            "one",
            tags=tuple(TagWire(name=name, value=value) for name, value in tags.items()),
            provisioning_status=provisioning,
            provisioning_status_detail=Detail(reason=reason, message=message) if reason or message else None,
            deletion_time=_CREATED if is_deleting else None,
        ),
        spec=ServerSpecWire(flavor_id=flavor, image_id=image),
        status=ServerStatusRead(
            **{"region_id": "north", "network_id": "net", "ssh_injection": "none", "revision": "1"} | status
        ),
    )


def with_methods(region: RegionClient, **methods: Any) -> RegionClient:
    """Return a client of region of which some methods are others."""
    return RegionClient(cast("RegionApi", SimpleNamespace(**vars(region.api) | methods)), region.caller)
