"""What it costs to know who asks and what they may do: a GET, beside the same GET on a public twin of its route.

Both go through the whole API without a socket, which would only add the same to both sides. *Warm* nothing has changed
since the last request of the same token. *Just after* something has, and every request pays for that: no real load is
like this, but it tells what one change costs each of those who come next. *Meanwhile* many ask in turn, and every 10 ms
something changes; the writes themselves are not counted, only what they cost those who ask. What is another
organization's must cost next to nothing, while each of a project's own users reads again.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle

from msgspec.structs import replace

from bench.bed import Bed
from bench.http.inside import Request
from bench.identity.environment import Environment, housed
from bench.identity.tenants import Tenant
from bench.kinds import name_of
from bench.loops import run
from bench.report import Measure, at_most
from bench.rounds import Subject, alternate, good_time
from remuda.app import IDENTITY_PREFIX
from remuda.identity.kinds.tenancy import Project

__all__ = ["measures"]

_GOAL = 1.4
_TENANT, _OTHER = Tenant(0), Tenant(1)
_PATH = f"{IDENTITY_PREFIX}/api/v1/organizations/{_TENANT.id}"
_MANY = 64
_REVOKED = 100
_HOUR = timedelta(hours=1)
_EVERY_S = 0.01
_CHANGES = 3
"""How often something changes in one turn."""

Write = Callable[[], Awaitable[object]]


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare in each state."""
    for title, goal, ours, public in run(_compare(bed)):
        yield at_most(goal, f"GET with {title}, to the same unauthenticated", ours, public, "µs CPU")


@dataclass(frozen=True, kw_only=True)
class _Asking:
    """Who can ask here, and what can change meanwhile."""

    environment: Environment
    user: Request
    account: Request
    many: Sequence[Request]
    public: Request
    changes: Mapping[str, Write]


async def _compare(bed: Bed) -> list[tuple[str, float | None, float, float]]:
    async with _asking(bed) as at:
        pairs = _pairs(at, bed.sizes.asked)
        subjects = [subject for _, _, *both in pairs for subject in both]
        found = [good_time(values) for values in await alternate(bed.sizes.rounds, *subjects)]
    compared = zip(pairs, found[::2], found[1::2], strict=True)
    return [(title, goal, ours, public) for (title, goal, *_), ours, public in compared]


def _pairs(at: _Asking, count: int) -> list[tuple[str, float | None, Subject, Subject]]:
    """Return what is compared: a goal holds for what a request usually finds."""
    user, account, anybody = [at.user], [at.account], [at.public]
    return [
        ("a user's token", _GOAL, _warm(user, count), _warm(anybody, count)),
        ("a service account's token", _GOAL, _warm(account, count), _warm(anybody, count)),
        *(
            (f"a user's token just after {title}", None, _just_after(write, at.user), _just_after(write, at.public))
            for title, write in at.changes.items()
        ),
        *(
            (f"{_MANY} users' tokens, meanwhile {title}", None, _meanwhile(write, at.many), _meanwhile(write, anybody))
            for title, write in at.changes.items()
        ),
    ]


def _warm(requests: Sequence[Request], count: int) -> Subject:
    async def turn(_: int) -> float:
        asked = cycle(requests)
        await _send(next(asked))
        start = time.process_time()
        for _ in range(count):
            await _send(next(asked))
        return (time.process_time() - start) * 1e6 / count

    return turn


def _just_after(write: Write, request: Request) -> Subject:
    async def turn(_: int) -> float:
        taken = []
        for _ in range(_CHANGES):
            await write()
            start = time.thread_time()
            await _send(request)
            taken.append(time.thread_time() - start)
        return min(taken) * 1e6

    return turn


def _meanwhile(write: Write, requests: Sequence[Request]) -> Subject:
    async def turn(_: int) -> float:
        asked, spent, count = cycle(requests), 0.0, 0
        for request in requests:
            await _send(request)  # whoever had a turn before has left something to be read again
        for _ in range(_CHANGES):
            await write()
            start = time.thread_time()
            while (now := time.thread_time()) - start < _EVERY_S:
                await _send(next(asked))
                count += 1
            spent += now - start
        return spent * 1e6 / count

    return turn


async def _send(request: Request) -> None:
    answered = await request.send()
    assert answered.status == 200, answered


@asynccontextmanager
async def _asking(bed: Bed) -> AsyncIterator[_Asking]:
    async with housed(bed, _TENANT, _OTHER) as environment:
        tokens = [await environment.log_in(subject) for subject in _TENANT.subjects[:_MANY]]
        many = [Request(environment.app, _PATH, token=token) for token in tokens]
        for number in range(_REVOKED):
            await environment.identity.tokens.tokens.revoke(
                name_of(number), expires=environment.identity.ports.clock.now() + _HOUR
            )

        async def log_in() -> None:
            await environment.log_in(_TENANT.subjects[-1])

        def project_of(tenant: Tenant) -> Write:
            projects = cycle(range(tenant.projects))

            async def change() -> None:
                project = await environment.store.get(Project, tenant.project(next(projects)))
                status = replace(project.status, observed_generation=project.status.observed_generation + 1)
                await environment.store.update_status(replace(project, status=status))

            return change

        yield _Asking(
            environment=environment,
            user=many[0],
            account=Request(environment.app, _PATH, token=await environment.account(_TENANT)),
            many=many,
            public=Request(environment.public, _PATH, token=None),
            changes={
                "a login": log_in,
                "a foreign project's change": project_of(_OTHER),
                "an own project's change": project_of(_TENANT),
            },
        )
