"""One server is all three services to a client that is given one address with a path for each."""

from dataclasses import replace
from typing import Any

from remuda.compute.app import TABLE as COMPUTE
from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.server.health import Mounted, Mounts
from remuda.identity.app import TABLE as IDENTITY
from remuda.region.app import TABLE as REGION
from tests.kit.asgi.client import Client
from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.provider import Provider
from tests.kit.compatibility.resources import GROUP, INSTANCE, NETWORK
from tests.kit.compute.requests import DEBIAN
from tests.kit.environment import options
from tests.kit.region.environment import STANDARD


class _Based:
    """A client's base URL with a path: `./api/…` is joined onto it."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self._app, self._base = app, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._base + scope["path"]
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)


async def _nowhere(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError("there is nothing")


def _at_one_address(environment: CompatibilityEnvironment) -> Provider:
    compute = environment.compute
    mounts = Mounts(
        [
            Mounted("/identity", IDENTITY, compute.region.identity.app.api),
            Mounted("/region", REGION, compute.region.app.api),
            Mounted("/compute", COMPUTE, compute.app.api),
        ],
        _nowhere,
    )
    clients: Any = {
        service: Client(app=_Based(mounts, f"/{service}"), token=client.token)
        for service, client in environment.provider.clients.items()
    }
    return replace(environment.provider, clients=clients)


@options(role="administrator")
async def test_everything_is_made_and_destroyed_through_one_address(environment: CompatibilityEnvironment) -> None:
    terraform = _at_one_address(environment)
    group = await terraform.create(GROUP, {"name": "ops", "role_ids": [], "service_account_ids": []})
    network = await terraform.create(NETWORK, environment.net)
    choice = {"flavor_id": STANDARD, "image_id": DEBIAN, "network_id": network["id"]}
    config = {"name": "web", **environment.where, **choice}
    instance = await terraform.create(INSTANCE, config)
    await terraform.update(INSTANCE, instance, {**config, "tags": {"team": "a"}})
    for resource, made in ((INSTANCE, instance), (NETWORK, network), (GROUP, group)):
        await terraform.destroy(resource, made["id"])
        assert await terraform.refresh(resource, made["id"]) is None
