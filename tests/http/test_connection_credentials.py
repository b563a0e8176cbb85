"""Credentials are read once for each connection, and verified for each request."""

from pathlib import Path
from typing import Any

import pytest

from remuda.http.asgi import Receive, Scope, Send
from tests.kit.asgi.client import Client
from tests.kit.sample_api.pipeline import HORSE, HORSES, running

PATH = f"{HORSES}/{HORSE}"


def on_one_connection(client: Client, kept: dict[str, Any] | None = None) -> Client:
    """Return the client, all of whose requests come over one connection, as the server says."""
    app, state = client.app, {} if kept is None else kept

    async def connected(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "remuda.connection": state}, receive, send)

    return Client(app=connected, token=client.token)


async def test_a_revoked_token_ends_on_its_connection_too(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        client = on_one_connection(api.client)
        assert [(await client.get(PATH)).status for _ in range(2)] == [200, 200]
        revoked = dict(api.tokens.known)
        api.tokens.known.clear()
        assert (await client.get(PATH)).status == 401
        api.tokens.known.update(revoked)
        assert (await client.get(PATH)).status == 200


async def test_another_token_on_a_connection_is_another_caller(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        client = on_one_connection(api.client)
        assert (await client.get(PATH)).status == 200
        assert (await client.get(PATH, authorization="Bearer wrong")).status == 401
        assert (await client.get(PATH, authorization="Basic good")).status == 401
        assert (await client.get(PATH)).status == 200
        assert (await client.having(None).get(PATH)).status == 401


async def test_a_claim_beside_a_known_token_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as api:
        client = on_one_connection(api.client)
        assert (await client.get(PATH)).status == 200
        seen: list[Any] = []
        authenticate = api.tokens.authenticate

        async def noting(credentials: Any) -> Any:
            seen.append(credentials)
            return await authenticate(credentials)

        monkeypatch.setattr(api.tokens, "authenticate", noting)
        await client.get(PATH, x_impersonate="neither")
        await client.get(PATH)
        assert [bool(each.fault) for each in seen] == [True, False]


async def test_m27_a_connection_keeps_no_long_credentials(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        kept: dict[str, Any] = {}
        client = on_one_connection(api.client, kept)
        assert (await client.get(PATH, authorization="Bearer " + "x" * 5000)).status == 401
        assert not kept
        assert (await client.get(PATH)).status == 200
        assert kept
