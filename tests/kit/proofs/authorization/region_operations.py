"""Region's matrix: every operation, as the reference (1.1 to 1.9) and our issue say it should be, written by hand.

It imports nothing from the code that it validates. `right` is the one that an operation is named for; `first` is asked for
before it, and `then` after it, of the same object or of its network.

Where we differ from the reference, on purpose:

* To change a security group takes `update`, not `delete`: the reference asks for the wrong one.
* To start, stop or reboot a server, to open its console or to have its private key takes `region:servers` update: to
  read is not to act, and platform readers may read.
* To replace a server is for services alone (`is_for_services`), and the reference does not have it.
* A reference on a network takes the right to references alone: the storage service has no other right, and is the one
  that puts them there.
* Regions, flavors and external networks in the second generation of the API, which name no organization, take the
  right somewhere; the reference does not have them.
* Regions as objects are for those who may change regions everywhere, too; the reference creates them in its cluster.
* The recovery verbs are for those who may change regions everywhere, the platform's administrators; the reference has
  none. What they need to go well cannot be had here for two of them (a deletion that is stuck, a server whose object
  was lost), so whoever may ask is refused for what it asks (`declares`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.kit.proofs.authorization.matrix import Right, Row

Values = Mapping[str, str]
Sort = Literal["open", "everywhere", "somewhere", "region", "organization", "filter", "place", "network", "object"]
"""Whose right counts: nobody's, one held everywhere, one held anywhere, nobody's but the region must be seen, one in the organization of the
path, one for each filter, one in the place that the body names, in that of the network that the body names, or in that
of the object."""

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
STANDARD = "11111111-1111-1111-1111-111111111111"
UBUNTU = "33333333-3333-3333-3333-333333333333"
IMAGE_URI = "https://images.example/disk.raw?signature=top-secret"


@dataclass(frozen=True, kw_only=True)
class RegionRow(Row):
    """One operation."""

    sort: Sort
    first: Right | None = None
    then: Right | None = None
    """Of a network, it is asked for in its place; to images, in the whole organization."""
    is_for_services: bool = False
    declares: int = 0
    """The status that the route promises, where those who may ask for it here come to another."""


def _named(values: Values, **spec: Any) -> Any:
    return {"metadata": {"name": values["name"]}, "spec": spec}


def _platform_region(values: Values) -> Any:
    return _named(values, type="simulated", simulated={"catalogue": "sim-north"})


def _platform_region_change(values: Values) -> Any:
    metadata = {"name": values["kept"], "description": values["name"]}
    return {"metadata": metadata, "spec": {"type": "simulated", "simulated": {"catalogue": "sim-north"}}}


def _where(values: Values) -> dict[str, str]:
    return {"organizationId": values["organizationID"], "projectId": values["projectID"]}


def _network(values: Values) -> Any:
    return _named(values, **_where(values), regionId=values["regionID"], prefix="10.0.0.0/24", dnsNameservers=[])


def _network_change(values: Values) -> Any:
    return _named(values, dnsNameservers=["192.0.2.1"])


def _group(values: Values) -> Any:
    return _named(values, networkId=values["networkID"], rules=[])


def _group_change(values: Values) -> Any:
    return _named(values, rules=[{"direction": "ingress", "protocol": "tcp", "port": 22}])


def _authority(values: Values) -> Any:
    return _named(values, **_where(values), publicKey=KEY)


_LISTENERS = [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}]


def _balancer(values: Values) -> Any:
    return _named(values, networkId=values["networkID"], listeners=_LISTENERS)


def _balancer_change(values: Values) -> Any:
    return _named(values, listeners=_LISTENERS)


def _storage(values: Values) -> Any:
    spec = {"regionId": values["regionID"], "storageClassId": values["classID"], "sizeGiB": 1}
    return _named(values, **_where(values), **spec, storageType={"NFS": {"rootSquash": True}})


def _storage_change(values: Values) -> Any:
    return _named(values, sizeGiB=1, storageType={"NFS": {"rootSquash": False}})


def _server(values: Values) -> Any:
    return _named(values, networkId=values["networkID"], flavorId=STANDARD, imageId=UBUNTU)


def _server_change(values: Values) -> Any:
    tags = [{"name": "changed", "value": values["name"]}]
    return {"metadata": {"name": values["kept"], "tags": tags}, "spec": {"flavorId": STANDARD, "imageId": UBUNTU}}


def _replacement(_values: Values) -> Any:
    return {"flavorId": STANDARD, "imageId": UBUNTU}


def _snapshot(values: Values) -> Any:
    return _named(values)


def _image(values: Values) -> Any:
    system = {"kernel": "linux", "family": "debian", "distro": "debian", "version": "12"}
    return _named(values, uri=IMAGE_URI, architecture="x86_64", virtualization="any", os=system)


def right(text: str) -> Right:
    """Return a right from text such as `networks:v2 read`."""
    endpoint, verb = text.split()
    return f"region:{endpoint}", verb


_SCOPES = {"everywhere": "everywhere", "somewhere": "organization", "organization": "organization"}


def _row(method: str, path: str, operation: str, sort: Sort, held: str, success: int = 200, **rest: Any) -> RegionRow:
    rest |= {name: right(rest[name]) for name in ("first", "then") if name in rest}
    return RegionRow(
        operation=operation,
        method=method,
        path=path,
        sort=sort,
        right=right(held),
        success=success,
        scope=_SCOPES.get(sort, "project"),  # type: ignore[arg-type]  # it is one of them
        names="filter" if sort == "filter" else "object",
        **rest,
    )


def _open(path: str, operation: str, sort: Sort = "open", scope: str = "authenticated") -> RegionRow:
    return RegionRow(operation=operation, method="GET", path=path, sort=sort, scope=scope)  # type: ignore[arg-type]  # it is one of them


def _kind(
    path: str, one: str, many: str, thing: str, endpoint: str, new: Callable[[Values], Any], *, on_network: bool = False
) -> tuple[RegionRow, ...]:
    """Return what nearly every kind has: a list, and things that are made, read and deleted."""
    item, read = f"{path}/{{{thing}}}", f"{endpoint} read"
    made: Any = (
        {"sort": "network", "first": "networks:v2 read", "thing": "networkID"} if on_network else {"sort": "place"}
    )
    return (
        _row("GET", path, f"list_{many}", "filter", read),
        _row("POST", path, f"create_{one}", held=f"{endpoint} create", success=201, body=new, **made),
        _row("GET", item, f"get_{one}", "object", read, thing=thing),
        _row("DELETE", item, f"delete_{one}", "object", f"{endpoint} delete", 202, first=read, thing=thing),
    )


_NETWORKS, _GROUPS, _SERVERS = "/api/v2/networks", "/api/v2/securitygroups", "/api/v2/servers"
_BALANCERS, _STORAGE = "/api/v2/loadbalancers", "/api/v2/filestorage"
_REFERENCE = _NETWORKS + "/{networkID}/references/{reference}"
_REGIONS, _ORGANIZATION = "/api/v2/regions", "/api/v1/organizations/{organizationID}"
_REGION, _THEIRS = _REGIONS + "/{regionID}", _ORGANIZATION + "/regions/{regionID}"
_PLATFORM = "/api/v2/platform/regions"
_SERVER = _SERVERS + "/{serverID}"


def _recovery(method: str, path: str, operation: str, success: int, **rest: Any) -> RegionRow:
    return _row(method, f"/api/v2/recovery/{path}", operation, "everywhere", "regions update", success, **rest)


def _verb(method: str, verb: str, operation: str, held: str, success: int, **rest: Any) -> RegionRow:
    if held != "servers read":
        rest["first"] = "servers read"
    return _row(method, f"{_SERVER}/{verb}", operation, "object", held, success, thing="serverID", **rest)


# fmt: off
# ruff: noqa: E501  a table is read line by line
CATALOGUE = (
    _row("GET", _REGIONS, "list_regions", "somewhere", "regions read"),
    _row("GET", _REGION, "get_region", "somewhere", "regions read"),
    _row("GET", f"{_REGION}/flavors", "list_flavors", "somewhere", "flavors read"),
    _row("GET", f"{_REGION}/externalnetworks", "list_external_networks", "somewhere", "externalnetworks read"),
    _row("GET", f"{_ORGANIZATION}/regions", "list_regions_in", "organization", "regions read"),
    _row("GET", f"{_THEIRS}/detail", "get_region_detail", "organization", "regions/detail read"),
    _row("GET", f"{_THEIRS}/flavors", "list_flavors_in", "organization", "flavors read"),
    _row("GET", f"{_THEIRS}/externalnetworks", "list_external_networks_in", "organization", "externalnetworks read"),
    _open("/api/version", "read_version"),
    _open("/.well-known/openid-protected-resource", "read_protected_resource", scope="public"),
)
PLATFORM_REGIONS = (
    _row("GET", _PLATFORM, "list_platform_regions", "everywhere", "regions read"),
    _row("POST", _PLATFORM, "create_platform_region", "everywhere", "regions create", 201, body=_platform_region),
    _row("GET", f"{_PLATFORM}/{{regionID}}", "get_platform_region", "everywhere", "regions read", thing="regionID"),
    _row("PUT", f"{_PLATFORM}/{{regionID}}", "update_platform_region", "everywhere", "regions update", thing="regionID", body=_platform_region_change),
    _row("DELETE", f"{_PLATFORM}/{{regionID}}", "delete_platform_region", "everywhere", "regions delete", 202, thing="regionID"),
    _row("POST", f"{_PLATFORM}/{{regionID}}/check", "check_platform_region", "everywhere", "regions update", thing="regionID"),
)
IMAGES = (
    _open(f"{_REGION}/images", "list_images", "region"),
    _row("GET", f"{_THEIRS}/images", "list_images_in", "organization", "images read"),
    _row("POST", f"{_THEIRS}/images", "import_image", "organization", "images create", body=_image),
    _row("DELETE", f"{_THEIRS}/images/{{imageID}}", "delete_image", "organization", "images delete", 202, thing="imageID"),
    _verb("POST", "snapshot", "snapshot_server", "servers read", 201, then="images create", body=_snapshot),
)
NETWORKS = (
    *_kind(_NETWORKS, "network", "networks", "networkID", "networks:v2", _network),
    _row("PUT", f"{_NETWORKS}/{{networkID}}", "update_network", "object", "networks:v2 update", 202, first="networks:v2 read", thing="networkID", body=_network_change),
    _row("PUT", _REFERENCE, "add_network_reference", "object", "networks:v2/references create", 201, thing="networkID"),
    _row("DELETE", _REFERENCE, "remove_network_reference", "object", "networks:v2/references delete", 204, thing="networkID"),
)
GROUPS = (
    *_kind(_GROUPS, "security_group", "security_groups", "securityGroupID", "securitygroups:v2", _group, on_network=True),
    _row("PUT", f"{_GROUPS}/{{securityGroupID}}", "update_security_group", "object", "securitygroups:v2 update", 202, first="securitygroups:v2 read", then="networks:v2 read", thing="securityGroupID", body=_group_change),
)
AUTHORITIES = _kind("/api/v2/sshcertificateauthorities", "ssh_certificate_authority", "ssh_certificate_authorities", "sshCertificateAuthorityID", "sshcertificateauthorities:v2", _authority)
BALANCERS = (
    *_kind(_BALANCERS, "load_balancer", "load_balancers", "loadBalancerID", "loadbalancers:v2", _balancer, on_network=True),
    _row("PUT", f"{_BALANCERS}/{{loadBalancerID}}", "update_load_balancer", "object", "loadbalancers:v2 update", 202, first="loadbalancers:v2 read", then="networks:v2 read", thing="loadBalancerID", body=_balancer_change),
)
STORAGE = (
    *_kind(_STORAGE, "file_storage", "file_storage", "filestorageID", "filestorage:v2", _storage),
    _row("PUT", f"{_STORAGE}/{{filestorageID}}", "update_file_storage", "object", "filestorage:v2 update", 202, first="filestorage:v2 read", thing="filestorageID", body=_storage_change),
    _open("/api/v2/filestorageclasses", "list_file_storage_classes"),
)
SERVERS = (
    *_kind(_SERVERS, "server", "servers", "serverID", "servers", _server, on_network=True),
    _row("PUT", _SERVER, "update_server", "object", "servers update", 202, first="servers read", then="networks:v2 read", thing="serverID", body=_server_change),
    _verb("POST", "replace", "replace_server", "servers update", 202, then="networks:v2 read", body=_replacement, is_for_services=True),
    _verb("POST", "start", "start_server", "servers update", 202),
    _verb("POST", "stop", "stop_server", "servers update", 202),
    _verb("POST", "softreboot", "soft_reboot_server", "servers update", 202),
    _verb("POST", "hardreboot", "hard_reboot_server", "servers update", 202),
    _verb("GET", "consolesessions", "open_server_console", "servers update", 200),
    _verb("GET", "consoleoutput", "get_server_console_output", "servers read", 200),
    _verb("GET", "sshkey", "get_server_ssh_key", "servers update", 200),
)
RECOVERY = (
    _recovery("GET", "orphans", "list_orphans", 200),
    _recovery("POST", "{kind}/{id}/retry", "retry_object", 202, thing="id"),
    _recovery("POST", "{kind}/{id}/abandon", "abandon_object", 422, declares=202, thing="id", body=lambda _: {"reason": "it is stuck"}),
    _recovery("POST", "orphans/{orphanID}/adopt", "adopt_orphan", 422, declares=201, thing="orphanID", body=lambda values: {"name": "lost", "networkId": values["id"]}),
    _recovery("POST", "orphans/{orphanID}/forget", "forget_orphan", 202, thing="orphanID", body=lambda _: {}),
    _recovery("POST", "deletions/resume", "resume_deletions", 202),
)
# fmt: on

RESOURCES = {
    "catalogue": CATALOGUE,
    "platform regions": PLATFORM_REGIONS,
    "images": IMAGES,
    "networks": NETWORKS,
    "groups": GROUPS,
    "authorities": AUTHORITIES,
    "balancers": BALANCERS,
    "storage": STORAGE,
    "servers": SERVERS,
    "recovery": RECOVERY,
}
ROWS = tuple(row for rows in RESOURCES.values() for row in rows)
