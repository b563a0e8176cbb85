"""Region as the subject of its matrix: things in every place, its doors, and clouds in which everything is instant.

It runs in simulated time. Controllers are at work, so that there is something for the verbs to act on; before anything
is asked, they have come to rest, so that whatever changes was the caller's doing.
"""

from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

from remuda.kernel.clock import SystemClock
from remuda.providers.contract.common import Handle
from remuda.region.app import TABLE
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds import KINDS
from remuda.region.kinds.images import IMAGE_IMPORT, ImageImport
from remuda.region.kinds.orphans import new_orphan
from remuda.region.kinds.regions import RegionOrganization, RegionSecurity, RegionSimulated, RegionSpec
from remuda.region.settings import ConfiguredRegion, RegionSettings
from tests.kit.asgi.reference import response_contract
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.proofs.authorization.identity_credentials import IdentityCredentials, furnish
from tests.kit.proofs.authorization.matrix import ABSENT, HOME, PLACES, Caller, Row, Scope, Target
from tests.kit.proofs.authorization.region_callers import CALLERS
from tests.kit.proofs.authorization.region_operations import IMAGES, KEY, ROWS, STANDARD, UBUNTU
from tests.kit.proofs.authorization.region_rule import RegionTarget
from tests.kit.proofs.authorization.service_methods import ServiceMethodTransport
from tests.kit.proofs.authorization.transports import ApiTransport, Request, Transport
from tests.kit.region.environment import RegionEnvironment, run_region
from tests.kit.region.images import Web

REFERENCE = "things.example.org/1"
OPEN, PRIVATE = "sim-north", "sim-south"
REGIONS = {"open": region_id(OPEN), "private": region_id(PRIVATE), "absent": ABSENT}
STOPPED = "a stopped server"
LISTED = {
    "list_networks": "networkID",
    "list_security_groups": "securityGroupID",
    "list_ssh_certificate_authorities": "sshCertificateAuthorityID",
    "list_load_balancers": "loadBalancerID",
    "list_file_storage": "filestorageID",
    "list_servers": "serverID",
}
"""What each list is of."""

_PATHS = {
    "id": "networks",
    "networkID": "networks",
    "securityGroupID": "securitygroups",
    "sshCertificateAuthorityID": "sshcertificateauthorities",
    "loadBalancerID": "loadbalancers",
    "filestorageID": "filestorage",
    "serverID": "servers",
}
_LONG_ENOUGH = 4
"""So many looks in a row that find nothing changed are more than anything waits that will go on by itself."""
_LISTENERS = [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}]


class RegionSubject:
    """Region, with everybody and everything in it."""

    rows: Sequence[Row] = ROWS
    callers: Sequence[Caller] = CALLERS

    def __init__(self, region: RegionEnvironment, credentials: IdentityCredentials) -> None:
        self.region, self.credentials = region, credentials
        self.transports: dict[str, Transport] = {
            "api": ApiTransport(region.asgi, response_contract(TABLE), credentials),
            "port": ServiceMethodTransport(TABLE, region.app.services, credentials),
        }
        self._things: dict[tuple[str, Scope], str] = {}
        self._setups: dict[Scope, str] = {}
        """A network in each place, on which other things are."""
        self._names: dict[str, str] = {}
        """What each thing is called."""
        self._class = ""
        self._imports: set[str] = set()
        self._is_about_images = False
        self._counter = count()
        self._is_at_rest = False

    async def request(self, row: Row, target: Target) -> Request:
        """Return a request about this target."""
        self._is_about_images = row in IMAGES
        values = {"name": f"n{next(self._counter)}", "reference": REFERENCE, "kept": "kept", "classID": ABSENT}
        values |= {"kind": "networks", "id": ABSENT}
        values["regionID"] = REGIONS[target.region] if isinstance(target, RegionTarget) else REGIONS["open"]
        if row.operation == "create_file_storage":
            values["classID"] = await self._storage_class()
        if target.named is not None:
            values |= {"organizationID": target.named.organization, "projectID": target.named.project}
        if row.thing:
            thing = STOPPED if row.operation == "start_server" else row.thing
            values[row.thing] = ABSENT if target.holder is None else await self._find(thing, target.holder)
            values["kept"] = self._names.get(values[row.thing], "kept")
        await self._rest()
        return Request(row=row, values=values, query=target.query)

    @property
    def setups(self) -> set[str]:
        """The networks on which other things are."""
        return {*self._setups.values()}

    def use_up(self, scope: Scope) -> None:
        """Forget what is in a place."""
        self._things = {key: name for key, name in self._things.items() if key[1] != scope}
        self._is_at_rest = False

    async def state(self) -> Any:
        """Return what changes with anything that region has stored, and with the images, which only the cloud has."""
        stored = self.region.store.change_counter([kind.type for kind in KINDS if kind is not IMAGE_IMPORT])
        return (stored, await self._images()) if self._is_about_images else stored

    async def _images(self) -> tuple[int, int]:
        """Return how many images there are at the cloud, and how many were ever on their way.

        What has arrived is forgotten a minute later, which is nobody's doing.
        """
        images = self.region.north.provider.images
        assert images is not None, "the simulated cloud has images"
        self._imports.update(each.uid for each in (await self.region.store.list(ImageImport)).items)
        return len(await images.images()), len(self._imports)

    async def shown(self, row: Row, scope: Scope) -> str:
        """Return the id of something that a list must show to who may see this place."""
        return await self._find(LISTED[row.operation], scope)

    async def _find(self, thing: str, scope: Scope) -> str:
        if (thing, scope) not in self._things:
            self._is_at_rest = False
            makers = {
                "imageID": self._image,
                STOPPED: self._stopped,
                "orphanID": self._orphan,
                "regionID": self._region,
            }
            made = await (makers[thing](scope) if thing in makers else self._make(thing, scope))
            self._things[thing, scope] = made
        return self._things[thing, scope]

    async def _make(self, thing: str, scope: Scope) -> str:
        where = {"organizationId": scope.organization, "projectId": scope.project}
        match thing:
            case "networkID" | "id":
                spec: Any = {**where, "regionId": REGIONS["open"], "prefix": "10.0.0.0/24", "dnsNameservers": []}
            case "sshCertificateAuthorityID":
                spec = {**where, "publicKey": KEY}
            case "filestorageID":
                chosen = {"regionId": REGIONS["open"], "storageClassId": await self._storage_class(), "sizeGiB": 1}
                spec = {**where, **chosen, "storageType": {"NFS": {"rootSquash": True}}}
            case "securityGroupID":
                spec = {"networkId": await self._setup(scope), "rules": []}
            case "loadBalancerID":
                spec = {"networkId": await self._setup(scope), "listeners": _LISTENERS}
            case _:
                spec = {"networkId": await self._setup(scope), "flavorId": STANDARD, "imageId": UBUNTU}
        path, name = f"/api/v2/{_PATHS[thing]}", f"t{next(self._counter)}"
        made = await self.region.made(path, name, spec)
        self._names[made] = name
        await self.region.until(f"{path}/{made}", "provisioned")
        return made

    async def _setup(self, scope: Scope) -> str:
        if scope not in self._setups:
            self._setups[scope] = await self._make("networkID", scope)
        return self._setups[scope]

    async def _image(self, scope: Scope) -> str:
        """Make an image of an organization, of a server's disk."""
        server = await self._find("serverID", scope)
        body = {"metadata": {"name": f"i{next(self._counter)}"}, "spec": {}}
        made = expect(await self.region.root.post(f"/api/v2/servers/{server}/snapshot", body), 201)
        await self._rest()
        return str(made["metadata"]["id"])

    async def _storage_class(self) -> str:
        if not self._class:
            classes = expect(await self.region.root.get("/api/v2/filestorageclasses"), 200)
            self._class = next(
                each["metadata"]["id"] for each in classes if each["spec"]["regionId"] == REGIONS["open"]
            )
        return self._class

    async def _orphan(self, _place: Scope) -> str:
        """Make the record of a network that is nobody's."""
        handle = Handle("nobody's", f"network-{next(self._counter)}")
        record = new_orphan(REGIONS["open"], "network", handle, "ObjectUnknown", self.region.clock.now())
        return (await self.region.store.create(record)).name

    async def _region(self, _place: Scope) -> str:
        """Make a region of the platform, which needs no provider here."""
        spec, name = {"type": "simulated", "simulated": {"catalogue": OPEN}}, f"region{next(self._counter)}"
        made = await self.region.made("/api/v2/platform/regions", name, spec)
        self._names[made] = name
        return made

    async def _stopped(self, scope: Scope) -> str:
        server = await self._make("serverID", scope)
        assert (await self.region.root.post(f"/api/v2/servers/{server}/stop")).status == 202
        return server

    async def _rest(self) -> None:
        """Wait until nothing changes any more by itself."""
        quiet = 0
        while not self._is_at_rest:
            before = await self.state()
            await self.region.clock.sleep(0.5)
            quiet = quiet + 1 if await self.state() == before else 0
            self._is_at_rest = quiet > _LONG_ENOUGH


def in_region(scenario: Callable[[RegionSubject], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on region, with everybody there."""

    async def furnished(region: RegionEnvironment) -> None:
        credentials = await furnish(region.identity)
        for organization in {place.organization for place in PLACES}:
            await be_generous(region, organization)
        await scenario(RegionSubject(region, credentials))

    run_region(furnished, is_instant=True, settings=settings(), web=Web(SystemClock()))  # its pages take no time


async def be_generous(region: RegionEnvironment, organization: str) -> None:
    """Let an organization have as much as a matrix takes."""
    path, root = f"{ORGANIZATIONS}/{organization}/quotas", region.identity.client(region.identity.root)
    quotas = expect(await root.get(path), 200)["quotas"]
    wanted = [{"kind": each["kind"], "quantity": 10**15} for each in quotas]
    expect(await root.put(path, {"quotas": wanted}), 200)


def settings() -> RegionSettings:
    """Return how region is to be: one region is for everybody, and one for the home organization."""
    return RegionSettings(regions=_regions(), absence_delay=timedelta(seconds=1))


def _regions() -> tuple[ConfiguredRegion, ...]:
    only = RegionSecurity(organizations=(RegionOrganization(id=HOME.organization),))
    return tuple(
        ConfiguredRegion(
            name=name,
            spec=RegionSpec(provider="simulated", simulated=RegionSimulated(region=name), security=security),
        )
        for name, security in ((OPEN, RegionSecurity()), (PRIVATE, only))
    )
