"""Where tokens come from: a login, a refresh, a new service account, each beside what it cannot do without.

That is, for a login, the one run of argon2. For the others it is one signature and one durable write, by as many
callers.
"""

import itertools
import time
from collections.abc import Awaitable, Callable, Iterator

import argon2

from bench.bed import Bed
from bench.callers import CALLERS, by_callers
from bench.cpu import spent_us
from bench.identity.browser import log_in, refreshed
from bench.identity.environment import Environment, housed
from bench.identity.tenants import Tenant
from bench.kinds import name_of
from bench.loops import run
from bench.report import Measure, at_most
from bench.rounds import Subject, alternate, good_time
from remuda.identity.kinds.users import user_id
from remuda.identity.login.passwords import ARGON2
from remuda.kernel.secrets import Secret

__all__ = ["measures"]

_PASSWORD = "correct horse battery staple"
_LOGINS = 2
"""How many in one turn."""
_LOGIN_GOAL = 1.25
_TENANTS = [Tenant(number, members=1, projects=0) for number in range(CALLERS)]

Each = Callable[[int], Awaitable[object]]


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare each with what it cannot do without."""
    login, refresh, account, hashing, bare = run(_compare(bed))
    yield at_most(_LOGIN_GOAL, "a login with a password, to argon2 alone", login / 1_000, hashing / 1_000, "ms CPU")
    yield at_most(None, "a refresh, to a signature and a write", refresh, bare, "µs CPU")
    yield at_most(None, "a new service account, to a signature and a write", account, bare, "µs CPU")


async def _compare(bed: Bed) -> list[float]:
    async with housed(bed, *_TENANTS) as environment:
        await environment.identity.passwords.set_password(user_id(_TENANTS[0].subjects[0]), Secret(_PASSWORD))
        count = bed.sizes.operations
        subjects = [
            _one_by_one(_login(environment)),
            _by_all(await _refresh(environment), count),
            _by_all(_account(environment), count),
            _one_by_one(_argon2()),
            _by_all(_bare(environment), count),
        ]
        return [good_time(values) for values in await alternate(bed.sizes.rounds, *subjects)]


def _one_by_one(each: Each) -> Subject:
    async def turn(_: int) -> float:
        start = time.process_time()
        for number in range(_LOGINS):
            await each(number)
        return spent_us(start, _LOGINS)

    return turn


def _by_all(each: Each, count: int) -> Subject:
    async def turn(_: int) -> float:
        start = time.process_time()
        await by_callers(each, range(count))
        return spent_us(start, count)

    return turn


def _login(environment: Environment) -> Each:
    async def each(_: int) -> None:
        await log_in(environment.app, _TENANTS[0].subjects[0], _PASSWORD)

    return each


def _argon2() -> Each:
    hasher = argon2.PasswordHasher(
        time_cost=ARGON2.time_cost,
        memory_cost=ARGON2.memory_kib,
        parallelism=ARGON2.parallelism,
        hash_len=32,
        salt_len=16,
    )
    stored = hasher.hash(_PASSWORD)

    async def each(_: int) -> None:
        assert hasher.verify(stored, _PASSWORD)

    return each


async def _refresh(environment: Environment) -> Each:
    """Let whoever is next use the token that has waited the longest, and put the next one in its place."""
    waiting = [await environment.refresh_token(tenant.subjects[0]) for tenant in _TENANTS]

    async def each(_: int) -> None:
        waiting.append(await refreshed(environment.app, waiting.pop(0)))

    return each


def _account(environment: Environment) -> Each:
    client = environment.client(environment.root)

    async def each(number: int) -> None:
        tenant = _TENANTS[number % CALLERS]
        body = {"metadata": {"name": "robot"}, "spec": {"groupIDs": tenant.groups[:1]}}
        await client.post(f"/api/v1/organizations/{tenant.id}/serviceaccounts", body)

    return each


def _bare(environment: Environment) -> Each:
    tokens, numbers = environment.identity.tokens.tokens, itertools.count()

    async def each(_: int) -> None:
        issued = await tokens.issue_for_account("bench", "bench")
        await tokens.revoke(name_of(next(numbers)), expires=issued.expires)

    return each
