"""What is left of a project, and in which order its things went: at the cloud, and in our timeline."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from remuda.identity.kinds.quotas import Allocation
from remuda.providers.contract.common import id_in
from remuda.providers.contract.provider import CloudEvent, EventSubject
from remuda.region.filestorage.classes import class_id
from remuda.region.kinds import KINDS
from remuda.store.kinds import Kind
from remuda.store.logs import subject_of
from tests.kit.identity.environment import ORGANIZATIONS
from tests.kit.region.environment import NORTH, RegionEnvironment

STAYS = {"regions", "filestorageclasses", "filestorageprovisioners"}
"""What belongs to no project."""
_FILES = class_id(NORTH, "c1f0c0de-0001-4000-8000-000000000001")
_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop ca@example.com"


def project_path(region: RegionEnvironment) -> str:
    """Return where identity has the project."""
    return f"{ORGANIZATIONS}/{region.organization}/projects/{region.project}"


async def end_project(region: RegionEnvironment) -> None:
    """Delete the project: one call."""
    reply = await region.identity.client(region.identity.root).delete(project_path(region))
    assert reply.status == 202, reply


async def until_project_is_gone(region: RegionEnvironment, *, within_s: float) -> None:
    """Wait until identity has the project no more."""
    root, deadline = region.identity.client(region.identity.root), region.clock.monotonic() + within_s
    while (await root.get(project_path(region))).status != 404:
        assert region.clock.monotonic() < deadline, f"not gone in {within_s:g} s: {await left_of(region)}"
        await region.clock.sleep(0.5)


async def left_of(region: RegionEnvironment) -> dict[str, list[str]]:
    """Return all that is left of any project: our objects, what they cost, and what the cloud has."""
    ours = {kind.plural: kind.type for kind in KINDS if kind.plural not in STAYS}
    found = {name: list((await region.store.list_names(kind)).items) for name, kind in ours.items()}
    rows = (await region.store.list(Allocation)).items
    found["allocations"] = [row.name for row in rows if row.spec.state != "released"]
    found |= {f"cloud: {what}": names for what, names in (await _at_cloud(region)).items()}
    return {name: left for name, left in found.items() if left}


async def _at_cloud(region: RegionEnvironment) -> Mapping[str, list[str]]:
    provider = region.north.provider
    assert provider.tenancies is not None
    assert provider.networks is not None
    assert provider.security_groups is not None
    assert provider.ports is not None
    assert provider.servers is not None
    assert provider.load_balancers is not None
    assert provider.file_storages is not None
    return {
        "tenancies": [each.name for each in await _all(provider.tenancies.tenancies())],
        "networks": [each.spec.handle.name for each in await _all(provider.networks.networks())],
        "groups": [each.handle.name for each in await _all(provider.security_groups.groups())],
        "ports": [each.spec.handle.name for each in await _all(provider.ports.ports())],
        "servers": [each.handle.name for each in await _all(provider.servers.server_versions())],
        "balancers": [each.name for each in await _all(provider.load_balancers.balancers())],
        "storages": [each.spec.name for each in await _all(provider.file_storages.storages())],
    }


async def _all(parts: AsyncIterator[Sequence[Any]]) -> list[Any]:
    return [each async for part in parts for each in part]


class Told:
    """What the cloud has told, in order: a thing's last event is its removal, once it is gone."""

    def __init__(self) -> None:
        self._last: dict[tuple[EventSubject, str], int] = {}
        self._count = 0

    def hear(self, event: CloudEvent) -> None:
        """Remember an event."""
        self._count += 1
        self._last[event.subject, event.handle.name] = self._count

    def ends(self, subject: EventSubject) -> Mapping[str, int]:
        """Return when the things of a sort were last heard of, by our ids."""
        return {id_in(name): number for (of, name), number in self._last.items() if of == subject}


@asynccontextmanager
async def listening(region: RegionEnvironment) -> AsyncIterator[Told]:
    """Hear all that the cloud tells while the block runs."""
    told, events = Told(), region.north.provider.events
    assert events is not None

    async def listen() -> None:
        async for event in events.events():
            told.hear(event)

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    try:
        yield told
    finally:
        task.cancel()


async def release(region: RegionEnvironment, kind: Kind[Any], name: str) -> int:
    """Return where in the timeline a controller release an object."""
    entries = (await region.store.read("timeline", subject_of(kind.qualified, name), limit=1000)).entries
    (position,) = [each.position for each in entries if msgspec.json.decode(each.data)["event"] == "FinalizerRemoved"]
    return position


async def furnish(
    region: RegionEnvironment, network: str, *, servers: Sequence[int], parts: int, at_once: int = 1
) -> list[str]:
    """Ask for security groups, load balancers, file storage and servers on a network; return the servers' ids.

    So many customers ask for servers `at_once`.
    """
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    place = {"organizationId": region.organization, "projectId": region.project}
    groups = [
        await region.made("/api/v2/securitygroups", f"group-{number}", {"networkId": network, "rules": []})
        for number in range(parts)
    ]
    listener = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": []}}
    for number in range(parts):
        spec: dict[str, Any] = {"networkId": network, "listeners": [listener]}
        await region.made("/api/v2/loadbalancers", f"balancer-{number}", spec)
    files = {"regionId": NORTH, "storageClassId": _FILES, "sizeGiB": 10, "storageType": {}}
    for number in range(parts):
        spec = place | files | {"attachments": {"networkIds": [network]}}
        await region.made("/api/v2/filestorage", f"files-{number}", spec)
    authority = await region.made("/api/v2/sshcertificateauthorities", "authority", place | {"publicKey": _KEY})

    async def ask(numbers: Iterable[int]) -> list[str]:
        return [
            await region.server(
                network,
                f"server-{number}",
                networking={"securityGroups": [groups[number % parts]]},
                sshCertificateAuthorityId=authority,
            )
            for number in numbers
        ]

    made = await asyncio.gather(*[ask(servers[each::at_once]) for each in range(at_once)])
    return [server for some in made for server in some]
