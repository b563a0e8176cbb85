"""Customers who make, change and remove everything that region has, and the projects that it is in."""

from contextlib import suppress
from typing import Any

from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import SeededRandomness
from remuda.region.filestorage.classes import class_id
from remuda.region.networks.controller import new_key_pair
from remuda.region.servers.rules import server_id
from tests.kit.asgi.contract import Reply
from tests.kit.identity.environment import ORGANIZATIONS
from tests.kit.region.environment import STANDARD
from tests.kit.sim_identity.history import THERE, Payer, Requests, verdict_of
from tests.kit.sim_region.customer import PATHS, Customer
from tests.kit.sim_region.history import IMAGES
from tests.kit.sim_region.system import CATALOGUES, REGIONS

KEY = new_key_pair(SeededRandomness(1)).public
FLAVORS = (STANDARD, "a1f0c0de-0001-4000-8000-000000000001")
AGAIN = "again"
"""The name of many servers."""
STORAGE_CLASS = CATALOGUES["sim-north"].storage_classes[0].id
MOST = {"project": 3, "network": 3, "group": 2, "authority": 1, "balancer": 2, "storage": 2, "server": 4}
"""How many of each there are at most, in what it is in."""


class Landlords(Customer):
    """Projects and quotas."""

    async def act(self) -> None:
        """Do one thing."""
        organization, projects = await self.organization(), self.living("project")
        if not organization:
            return
        if len(projects) < 2 or (len(projects) < MOST["project"] and self.chance(0.3)):
            await self._make_project(organization)
        elif self.chance(0.5):
            project = self.one_of(projects)
            await self.remove("project", project, f"{ORGANIZATIONS}/{organization}/projects/{project}")
        else:
            await self._limit(organization)

    async def begin(self) -> None:
        """Make what everybody else needs, unless the machine goes down: nobody else acts then, either."""
        while len(self.living("project")) < 2 and not self.system.machine.is_down:
            with suppress(Unavailable):
                organization = await self.organization()
                if organization:
                    await self._make_project(organization)

    async def organization(self) -> str:
        """Return the one organization there is, or nothing if it could not be made yet."""
        if not self.history.known["organization"]:
            since = self.history.now()
            body = {"metadata": {"name": "acme"}, "spec": {"organizationType": "adhoc"}}
            reply, verdict = await self.write("POST", ORGANIZATIONS, body)
            if verdict == "yes":
                self.history.made("organization", reply.json["metadata"]["id"], Payer(), since=since)
        return next(iter(self.history.known["organization"]), "")

    async def remove_everything(self) -> None:
        """Ask for every project to go that is there, known or not."""
        organization = await self.organization()
        for project in list((await self.system.see()).of("project")):
            await self.remove("project", project, f"{ORGANIZATIONS}/{organization}/projects/{project}")

    async def _make_project(self, organization: str) -> None:
        since, tenant = self.history.now(), f"{ORGANIZATIONS}/{organization}/projects"
        body = {"metadata": {"name": self.history.name("project")}, "spec": {"groupIDs": []}}
        reply, verdict = await self.write("POST", tenant, body)
        if verdict == "yes":
            id_ = reply.json["metadata"]["id"]
            self.history.put(("project", id_), ("organization", organization))
            self.history.made("project", id_, Payer(organization, id_), since=since)

    async def _limit(self, organization: str) -> None:
        kinds = {"networks": (1, 3, 6), "loadbalancers": (0, 2, 5), "publicips": (0, 1, 5), "filestorage": (0, 1 << 40)}
        quotas = [{"kind": kind, "quantity": self.one_of(limits)} for kind, limits in kinds.items()]
        await self.send("PUT", f"{ORGANIZATIONS}/{organization}/quotas", {"quotas": quotas})


class Tenant(Customer):
    """Somebody with a project."""

    def place(self) -> Payer | None:
        """Return where something new is to be."""
        projects = self.living("project")
        return self.history.known["project"][self.one_of(projects)] if projects else None

    def network(self) -> str:
        """Return a network on which something new is to be, now and then one that is going."""
        found = self.living("network")
        if not found or self.chance(0.05):
            found = list(self.history.known["network"])
        return self.one_of(found) if found else ""

    def image(self, network: str) -> str:
        """Return what a server on a network is to be made of, now and then an image of the customers' own."""
        region = self.history.regions[network]
        own = [each for each in self.living("image") if self.history.regions[each] == region]
        return self.one_of(own if own and self.chance(0.3) else IMAGES)

    def network_of(self, server: str) -> str:
        """Return the network that a server is on."""
        return next(id_ for kind, id_ in self.history.homes["server", server] if kind == "network")


class Networkers(Tenant):
    """Networks and security groups."""

    async def act(self) -> None:
        """Do one thing."""
        networks, place = self.living("network"), self.place()
        if place is not None and (not networks or (len(networks) < MOST["network"] and self.chance(0.3))):
            await self._make_network(place)
        elif networks and self.chance(0.3):
            await self._touch_network(self.one_of(networks))
        elif network := self.network():
            await self._group(network)

    async def _make_network(self, place: Payer) -> None:
        spec = {
            "organizationId": place.organization,
            "projectId": place.project,
            "regionId": self.one_of(REGIONS),
            "prefix": self.one_of(("10.0.0.0/16", "10.0.0.0/16", "10.0.0.0/28")),
            "dnsNameservers": [],
        }
        made = await self.make("network", spec, place, servers=(), held=False)
        self.history.regions[made] = str(spec["regionId"])

    async def _touch_network(self, network: str) -> None:
        if self.chance(0.6):
            servers = self.one_of(((), ("8.8.8.8",), ("1.1.1.1", "8.8.8.8")))
            await self.change("network", network, {"dnsNameservers": servers}, servers=servers)
        else:
            await self.remove("network", network)

    async def _group(self, network: str) -> None:
        groups, ports = self.living("group", ("network", network)), self.one_of(((), (22,), (80, 443)))
        rules = [{"direction": "ingress", "protocol": "tcp", "port": port} for port in ports]
        if len(groups) < MOST["group"] and self.chance(0.5):
            spec = {"networkId": network, "rules": rules}
            await self.make("group", spec, self.history.known["network"][network], ("network", network), ports=ports)
        elif groups and self.chance(0.6):
            await self.change("group", self.one_of(groups), {"rules": rules}, ports=ports)
        elif groups:
            await self.remove("group", self.one_of(groups))


class Holders(Tenant):
    """Load balancers, authorities, file storage."""

    async def act(self) -> None:
        """Do one thing."""
        place, network, draw = self.place(), self.network(), self._randomness.uniform(0, 1)
        if draw < 0.5 and network:
            await self._balancer(network)
        elif draw < 0.7 and place is not None:
            await self._authority(place)
        elif place is not None:
            await self._storage(place)

    async def _balancer(self, network: str) -> None:
        balancers, is_public = self.living("balancer", ("network", network)), self.chance(0.4)
        member = {"address": "10.0.0.9", "port": 8080}
        listeners = [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": [member]}}]
        if len(balancers) < MOST["balancer"] and self.chance(0.5):
            spec = {"networkId": network, "publicIP": is_public, "listeners": listeners}
            place = self.history.known["network"][network]
            await self.make("balancer", spec, place, ("network", network), public=is_public)
        elif balancers and self.chance(0.6):
            await self.change("balancer", self.one_of(balancers), {"publicIP": is_public}, public=is_public)
        elif balancers:
            await self.remove("balancer", self.one_of(balancers))

    async def _authority(self, place: Payer) -> None:
        found = self.living("authority", ("project", place.project))
        if len(found) < MOST["authority"]:
            spec = {"organizationId": place.organization, "projectId": place.project, "publicKey": KEY}
            await self.make("authority", spec, place)
        else:
            await self.remove("authority", self.one_of(found))

    async def _storage(self, place: Payer) -> None:
        storages, region = self.living("storage", ("project", place.project)), self.one_of(REGIONS)
        networks = [each for each in self.living("network", ("project", place.project)) if self.chance(0.7)]
        size = self.one_of((1, 5, 50))
        if len(storages) < MOST["storage"] and self.chance(0.5):
            networks = [each for each in networks if self.history.regions[each] == region]
            spec = {
                "organizationId": place.organization,
                "projectId": place.project,
                "regionId": region,
                "storageClassId": class_id(region, STORAGE_CLASS),
                **_files(size, networks),
            }
            if made := await self.make("storage", spec, place, size=size << 30):
                self.history.regions[made] = region
        elif storages and self.chance(0.6):
            storage = self.one_of(storages)
            networks = [each for each in networks if self.history.regions[each] == self.history.regions[storage]]
            await self.change("storage", storage, _files(size, networks), size=size << 30)
        elif storages:
            await self.remove("storage", self.one_of(storages))


class Drivers(Tenant):
    """Servers, and everything that can be done to one."""

    async def act(self) -> None:
        """Do one thing."""
        network, servers = self.network(), self.living("server")
        on_it = self.living("server", ("network", network)) if network else []
        if network and len(on_it) < MOST["server"] and (not servers or self.chance(0.4)):
            await self._make(network)
        elif servers:
            await self._use(self.one_of(servers))

    async def _make(self, network: str) -> None:
        place, is_public, image = self.history.known["network"][network], self.chance(0.3), self.image(network)
        authorities = self.living("authority", ("project", place.project))
        spec: dict[str, Any] = {
            "networkId": network,
            "flavorId": self.one_of(FLAVORS),
            "imageId": image,
            "networking": self._networking(network, is_public=is_public),
        }
        if authorities and self.chance(0.3):
            spec["sshCertificateAuthorityId"] = self.one_of(authorities)
        said: dict[str, Any] = {"image": image, "public": is_public}
        if self.chance(0.7):
            await self.make("server", spec, place, ("network", network), **said)
            return
        # One that has the name of an earlier one has its id as well.
        id_ = server_id(network, AGAIN)
        requests: Requests = {(what, "server", id_): value for what, value in {THERE: THERE, **said}.items()}
        with self.history.asking(requests) as asked:
            made = await self.make("server", spec, place, ("network", network), name=AGAIN, **said)
            asked.verdict = "yes" if made else "unclear"

    async def _use(self, server: str) -> None:
        path, image = f"{PATHS['server']}/{server}", self.image(self.network_of(server))
        draw = self._randomness.uniform(0, 1)
        if draw < 0.2:
            await self.remove("server", server)
        elif draw < 0.45:
            await self._update(server, image)
        elif draw < 0.6:
            await self._replace(server, image)
        elif draw < 0.9:
            verb = self.one_of(("start", "start", "stop", "stop", "softreboot", "hardreboot"))
            reply = await self.send("POST", f"{path}/{verb}")
            if verb == "stop" and reply.status == 202 and self.chance(0.7):
                await self.system.machine.clock.sleep(2)
                await self.send("POST", f"{path}/start")
        elif draw < 0.95:
            self._keep_key(await self.send("GET", f"{path}/sshkey"))
        else:
            await self.send("GET", f"{path}/{self.one_of(('consoleoutput', 'consolesessions'))}")

    async def _update(self, server: str, image: str) -> None:
        is_public = self.chance(0.3)
        spec = {"imageId": image, "networking": self._networking(self.network_of(server), is_public=is_public)}
        await self.change("server", server, spec, image=image, public=is_public)

    async def _replace(self, server: str, image: str) -> None:
        path, body = f"{PATHS['server']}/{server}/replace", {"flavorId": self.one_of(FLAVORS), "imageId": image}
        with self.history.asking({("image", "server", server): image}) as asked:
            reply = self.noted("POST", path, await self.system.service().send("POST", path, body=body))
            asked.verdict = verdict_of(reply)

    def _networking(self, network: str, *, is_public: bool) -> dict[str, Any]:
        groups = [each for each in self.living("group", ("network", network)) if self.chance(0.5)]
        return {"publicIP": is_public, "securityGroups": groups}

    def _keep_key(self, reply: Reply) -> None:
        if reply.status == 200:
            self.history.private_keys.add(reply.json["privateKey"])


class Readers(Customer):
    """Check everything."""

    async def act(self) -> None:
        """Do one thing."""
        kind = self.one_of([kind for kind in PATHS if self.history.known[kind]] or ["network"])
        known = list(self.history.known[kind])
        path = f"{PATHS[kind]}/{self.one_of(known)}" if known and self.chance(0.6) else PATHS[kind]
        await self.send("GET", path)


def _files(size: int, networks: list[str]) -> dict[str, Any]:
    return {"sizeGiB": size, "storageType": {}, "attachments": {"networkIds": networks}}
