"""Reads: an organization's quotas, and warm lists of 1,000, beside what encodes the same answers and nothing else.

Projects are rendered once and kept by the store, which finds them through an index: a project is so small that this is
most of the work. A user is made of several objects at each read, so it is converted and encoded again.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from bench.bed import Bed
from bench.http.inside import Request
from bench.identity.environment import Environment, housed
from bench.identity.tenants import Tenant
from bench.loops import run
from bench.report import Measure, at_least, at_most
from bench.rounds import Subject, alternate, good_time
from remuda.access.principal import Context
from remuda.app import IDENTITY_PREFIX
from remuda.http.page_reads import Reading, page_slots
from remuda.http.schema import Wire
from remuda.identity.kinds.tenancy import Project
from remuda.identity.tenancy.rules import read_project
from remuda.resources.conventions import ORGANIZATION

__all__ = ["measures"]

_LISTED = 1_000
_TENANT = Tenant(0, members=_LISTED, projects=_LISTED)
_PATH = f"{IDENTITY_PREFIX}/api/v1/organizations/{_TENANT.id}"
_TIMES = 5


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare each with its limit."""
    organization, quotas, projects, bare_projects, users, bare_users = run(_compare(bed))
    yield at_most(None, "GET of quotas, to that of an organization", quotas, organization, "µs CPU")
    yield _list("projects", projects, bare_projects)
    yield _list("users", users, bare_users)


def _list(title: str, ours_us: float, bare_us: float) -> Measure:
    return at_least(None, f"warm list of {_LISTED:,} {title}, to encoding it", 1e6 / ours_us, 1e6 / bare_us, "1/s CPU")


async def _compare(bed: Bed) -> list[float]:
    async with housed(bed, _TENANT) as environment:
        await environment.settled()
        count = bed.sizes.asked
        projects, users = await _projects(environment), await _users(environment)
        subjects = [
            _asking(environment, "", count),
            _asking(environment, "/quotas", count),
            _asking(environment, "/projects", _TIMES),
            _encoding(projects),
            _asking(environment, "/users", _TIMES),
            _encoding(users),
        ]
        return [good_time(values) for values in await alternate(bed.sizes.rounds, *subjects)]


async def _projects(environment: Environment) -> Sequence[Wire]:
    found = await environment.store.list(Project, labels={ORGANIZATION: _TENANT.id})
    return [read_project(each) for each in found.items]


async def _users(environment: Environment) -> Sequence[Wire]:
    principal = await environment.principal(environment.root)
    context = Context(principal=principal, operation="bench")
    page = await environment.identity.services.users.list(context, _TENANT.id)
    found: Sequence[Wire] = await page.read(Reading(page_slots(), ""))
    return found


def _asking(environment: Environment, path: str, times: int) -> Subject:
    request = Request(environment.app, f"{_PATH}{path}", token=environment.root)

    async def turn(_: int) -> float:
        start = time.process_time()
        for _ in range(times):
            answered = await request.send()
            assert answered.status == 200, answered
        return (time.process_time() - start) * 1e6 / times

    return turn


def _encoding(answers: Sequence[Wire]) -> Subject:
    assert len(answers) == _LISTED
    encode: Callable[[Sequence[Wire]], bytes] = msgspec.json.Encoder().encode

    async def turn(_: int) -> float:
        start = time.process_time()
        for _ in range(_TIMES):
            encode(answers)
        return (time.process_time() - start) * 1e6 / _TIMES

    return turn
