"""What an operator on the machine itself does to a system: through the process that runs, or in its place.

Whether one runs is told by the lock on the store, which a process cannot leave behind. If it is free the store is
opened here; if not, the request goes to where the process says that it answers.
"""

from remuda.app import IDENTITY_PREFIX, registry
from remuda.config.effect import identity_settings, public_url
from remuda.config.load import Loaded
from remuda.datadir import DataDirectory
from remuda.http.transport import encode_body, error_from, read_answer
from remuda.identity.credentials import CredentialsFile
from remuda.identity.operator_tokens import (
    PATH,
    OperatorRequest,
    Operators,
    OperatorTokenRead,
    OperatorTokenWrite,
    seal_request,
)
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, StoreLocked, Unavailable
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.sqlite.store import SqliteStore, open_store

_PATIENCE_S = 10.0


async def issue(found: Loaded, request: OperatorRequest) -> OperatorTokenRead:
    """Return a token as the request asks for it."""
    data = DataDirectory(found.configuration.server.data)
    if not data.store.exists():
        raise Invalid("--data", f"{data.path} holds no store", remedy="name the directory that remuda up was given")
    data.check_store()
    sealer = data.sealer()
    try:
        store = open_store(data.store, registry(), sealer)
    except StoreLocked:
        return await _ask(data, request, sealer)
    try:
        return await _operators(store, sealer, found, data).issue(request)
    finally:
        await store.close()


def _operators(store: SqliteStore, sealer: Sealer, found: Loaded, data: DataDirectory) -> Operators:
    clock, randomness = SystemClock(), SystemRandomness()
    settings = identity_settings(found.configuration, url=_url(found, data))
    keys = SigningKeys(store=store, clock=clock, randomness=randomness, settings=settings)
    tokens = Tokens(store=store, clock=clock, randomness=randomness, settings=settings, keys=keys)
    return Operators(store=store, log=store, clock=clock, sealer=sealer, tokens=tokens)


def _url(found: Loaded, data: DataDirectory) -> str:
    """Return where clients reach the process when it runs: where they did, if nobody says where they will."""
    server = found.configuration.server
    configured = public_url(server, server.listen)
    if server.public_url or ("server.listen" in found.origins and server.listen.port):
        return configured
    last = CredentialsFile(data.credentials).read()
    known = "" if last is None else last.endpoints.get("identity", "").removesuffix(IDENTITY_PREFIX)
    return known or configured


async def _ask(data: DataDirectory, request: OperatorRequest, sealer: Sealer) -> OperatorTokenRead:
    import httpx2  # noqa: PLC0415  only needed where a process runs

    url = data.running_at()
    if url is None:
        raise Unavailable(
            f"Another process has {data.store} open and has not said where it answers: try again in a moment."
        )
    body = encode_body(OperatorTokenWrite(request=seal_request(request, sealer)))
    headers = {"Content-Type": "application/json"}
    try:
        async with httpx2.AsyncClient(timeout=_PATIENCE_S, trust_env=False) as client:
            answer = await client.post(f"{url}{IDENTITY_PREFIX}{PATH}", content=body, headers=headers)
    except httpx2.HTTPError as error:
        cause = str(error) or type(error).__name__
        raise Unavailable(
            f"The process that has {data.store} open does not answer at {url} ({cause}): try again, or stop it first."
        ) from None
    if not answer.is_success:
        raise error_from(answer.status_code, answer.headers, answer.content, server=url)
    return read_answer(answer.content, OperatorTokenRead, server=url)
