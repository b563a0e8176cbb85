"""Nothing blocks the loop: the most CPU time of one callback in what identity does at length, and at once.

Every case begins with the caches as the ones before have left them. The garbage collector is asked to look at what is
new while we watch.
"""

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial

from bench.bed import Bed
from bench.callers import CALLERS, by_callers
from bench.identity.browser import log_in, refreshed
from bench.identity.client import Client
from bench.identity.environment import Environment, housed
from bench.identity.tenants import Tenant
from bench.kinds import name_of
from bench.loopwatch import watched
from bench.report import Measure, at_most, figure
from remuda.identity.kinds.users import membership_id, user_id
from remuda.identity.rbac.roles import role_id
from remuda.kernel.secrets import Secret

__all__ = ["measures"]

_LIMIT_MS = 10.0
_PASSWORD = "correct horse battery staple"
_LARGE = 0
"""The number of the organization with many users and projects."""

Work = Callable[[], Awaitable[object]]
Case = tuple[str, Work]


def measures(bed: Bed) -> Iterator[Measure]:
    """Run each work under watch."""
    yield from asyncio.run(_watch(_cases(bed)))


async def _watch(cases: AsyncIterator[Case]) -> list[Measure]:
    found: list[Measure] = []
    async for title, work in cases:
        async with watched() as held:
            await asyncio.create_task(_run(work))
            asyncio.get_running_loop().call_soon(gc.collect, 0)
            await asyncio.sleep(0)
        found.append(at_most(1, f"blocks the event loop: {title}", held.cpu_s * 1_000, _LIMIT_MS, "ms CPU"))
        found.append(figure(f"wall lag: {title}", held.lag_s * 1_000, "ms"))
    return found


async def _run(work: Work) -> None:
    await work()


async def _cases(bed: Bed) -> AsyncIterator[Case]:
    members = bed.sizes.members
    large = Tenant(_LARGE, members=members, projects=members)
    small = [Tenant(number, members=1, projects=1) for number in range(1, CALLERS + 1)]
    async with housed(bed, large, *small) as environment:
        await environment.settled()
        root, path = environment.client(environment.root), f"/api/v1/organizations/{large.id}"
        for tenant in small[:2]:
            await environment.identity.passwords.set_password(user_id(tenant.subjects[0]), Secret(_PASSWORD))
        logins = [tenant.subjects[0] for tenant in small[:2]] * 2
        yield "logins with a password", partial(by_callers, lambda who: log_in(environment.app, who, _PASSWORD), logins)
        yield f"a list of {members:,} users", partial(root.get, f"{path}/users")
        yield f"a list of {members:,} projects", partial(root.get, f"{path}/projects")
        yield f"a list of groups of {members:,}", partial(root.get, f"{path}/groups")
        yield f"permissions in {members:,} projects", await _permissions(environment, large)
        yield f"a group of {members:,} changed", _change_group(root, large)
        mixed = _Mixed(environment, small)
        await mixed.prepare()
        yield f"everything at once by {CALLERS} callers", partial(by_callers, mixed.turn, range(bed.sizes.operations))
        gone = partial(root.delete, path)
        yield f"deleting an organization of {members:,} users and projects", partial(_until_settled, environment, gone)


async def _permissions(environment: Environment, tenant: Tenant) -> Work:
    """Return what asks for the permissions of one who is in every second project."""
    return partial(environment.client(await environment.log_in(tenant.subjects[0])).get, "/api/v1/acl")


def _change_group(root: Client, tenant: Tenant) -> Work:
    """Return what leaves one out of the group of all."""
    members = [membership_id(tenant.id, user_id(each)) for each in tenant.subjects[1:]]
    spec = {"roleIDs": [role_id("auditor")], "serviceAccountIDs": [], "userIDs": members}
    path = f"/api/v1/organizations/{tenant.id}/groups/{tenant.groups[0]}"
    return partial(root.put, path, {"metadata": {"name": "fewer"}, "spec": spec})


async def _until_settled(environment: Environment, work: Work) -> None:
    await work()
    await environment.settled()


class _Mixed:
    """What callers do, each something else."""

    def __init__(self, environment: Environment, tenants: list[Tenant]) -> None:
        self._environment, self._tenants = environment, tenants
        self._root = environment.client(environment.root)
        self._refresh: list[str] = []
        self._numbers = itertools.count()
        self._kinds = itertools.cycle(
            (self._read, self._allocate, self._renew, self._account, self._project, self._list)
        )

    async def prepare(self) -> None:
        """Log everybody in."""
        self._refresh = [await self._environment.refresh_token(tenant.subjects[0]) for tenant in self._tenants]

    async def turn(self, number: int) -> None:
        """Do what comes next."""
        tenant = self._tenants[number % len(self._tenants)]
        await next(self._kinds)(tenant, f"/api/v1/organizations/{tenant.id}")

    async def _read(self, tenant: Tenant, path: str) -> None:
        await self._environment.client(await self._environment.log_in(tenant.subjects[0])).get(path)

    async def _allocate(self, tenant: Tenant, path: str) -> None:
        rows, key = f"{path}/projects/{tenant.project(0)}/allocations", name_of(next(self._numbers))
        spec = {
            "kind": "instances.compute",
            "id": key,
            "allocations": [{"kind": "servers", "committed": 0, "reserved": 0}],
        }
        made = await self._root.post(rows, {"metadata": {"name": "instance"}, "spec": spec}, key=key)
        await self._root.post(f"{rows}/{made.json['metadata']['id']}/confirm", status=200)

    async def _renew(self, _tenant: Tenant, _path: str) -> None:
        self._refresh.append(await refreshed(self._environment.app, self._refresh.pop(0)))

    async def _account(self, tenant: Tenant, path: str) -> None:
        body = {"metadata": {"name": "robot"}, "spec": {"groupIDs": tenant.groups[:1]}}
        await self._root.post(f"{path}/serviceaccounts", body)

    async def _project(self, tenant: Tenant, path: str) -> None:
        body = {"metadata": {"name": "more"}, "spec": {"groupIDs": tenant.groups[:1]}}
        await self._root.post(f"{path}/projects", body, status=202)

    async def _list(self, _tenant: Tenant, path: str) -> None:
        for each in ("users", "groups", "projects", "serviceaccounts", "quotas", "allocations"):
            await self._root.get(f"{path}/{each}")
