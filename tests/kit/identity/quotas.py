"""Quota API for tests over HTTP: an organization with two projects, and a user with all permissions."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from remuda.identity.quotas.routes import ROUTES
from tests.kit.asgi.client import Client
from tests.kit.identity.resource_api import ORG, PROJECT, IdentityApi, everywhere, run_identity_api
from tests.kit.proofs.linearizability.invariants import invariant_of
from tests.kit.proofs.linearizability.quota_clients import OWNERS, Quotas, furnish, service

OTHER_PROJECT = "a0000000-0000-4000-8000-00000000000b"
NOWHERE = "c0000000-0000-4000-8000-000000000003"
LIFE = timedelta(minutes=10)
BASE = f"/api/v1/organizations/{ORG}"
ROWS = f"{BASE}/projects/{PROJECT}/allocations"
ALL = "identity:quotas CRUD, identity:allocations CRUD, identity:projects CRUD"
SERVICE = everywhere("unikorn-compute", ALL)

Scenario = Callable[[IdentityApi[Quotas]], Coroutine[Any, Any, None]]


def run_quotas(scenario: Scenario) -> None:
    async def furnished(api: IdentityApi[Quotas]) -> None:
        await furnish(api.store, ORG, PROJECT, OTHER_PROJECT)
        api.world.invariants.append(invariant_of(api.store, ORG))
        await scenario(api)

    run_identity_api(
        lambda world, store: service(store, world.clock, world.randomness, intent_lifetime=LIFE), ROUTES, furnished
    )


def asked(owner: str = "owner-1", /, **amounts: int | tuple[int, int]) -> dict[str, Any]:
    numbers = {kind: each if isinstance(each, tuple) else (each, 0) for kind, each in amounts.items()}
    allocations = [{"kind": kind, "committed": c, "reserved": r} for kind, (c, r) in numbers.items()]
    return {"metadata": {"name": "undefined"}, "spec": {"kind": OWNERS, "id": owner, "allocations": allocations}}


def limits(**quantities: int | None) -> dict[str, Any]:
    return {"quotas": [{"kind": kind, "quantity": quantity} for kind, quantity in quantities.items()]}


async def quota(client: Client, kind: str = "servers", path: str = f"{BASE}/quotas") -> dict[str, Any]:
    reply = await client.get(path)
    assert reply.status == 200, reply
    (found,) = [each for each in reply.json["quotas"] if each["kind"] == kind]
    return dict(found)


async def made(client: Client, body: dict[str, Any], **headers: str) -> str:
    reply = await client.post(ROWS, body, **headers)
    assert reply.status == 201, reply
    found: str = reply.json["metadata"]["id"]
    return found
