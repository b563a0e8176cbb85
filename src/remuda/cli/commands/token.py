"""What an operator on the machine itself does to a system: through the process that runs, or in its place.

Whether one runs is told by the lock on the store, which a process cannot leave behind. If it is free the store is
opened here; if not, the request goes to where the process says that it answers.

``remuda token issue``: a short token for whoever sits at the machine itself.
"""

import asyncio
import os
import pwd
import sys
from pathlib import Path

from remuda.app import IDENTITY_PREFIX, registry
from remuda.cli.commands.config import loaded
from remuda.cli.output import say
from remuda.config.durations import duration_text, parse_duration
from remuda.config.loader import LoadedConfiguration
from remuda.config.settings import identity_settings, public_url
from remuda.datadir import DataDirectory
from remuda.http.remote_errors import error_from
from remuda.http.transport import encode_body, read_response
from remuda.identity.credentials import CredentialsFile
from remuda.identity.operator_tokens import (
    DEFAULT_LIFETIME,
    MAX_LIFETIME,
    PATH,
    OperatorRequest,
    OperatorTokenRead,
    OperatorTokens,
    OperatorTokenWrite,
    new_request,
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


async def _issued(found: LoadedConfiguration, request: OperatorRequest) -> OperatorTokenRead:
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


def _operators(store: SqliteStore, sealer: Sealer, found: LoadedConfiguration, data: DataDirectory) -> OperatorTokens:
    clock, randomness = SystemClock(), SystemRandomness()
    settings = identity_settings(found.configuration, url=_url(found, data))
    keys = SigningKeys(store=store, clock=clock, randomness=randomness, settings=settings)
    tokens = Tokens(store=store, clock=clock, randomness=randomness, settings=settings, keys=keys)
    return OperatorTokens(store=store, log=store, clock=clock, sealer=sealer, tokens=tokens)


def _url(found: LoadedConfiguration, data: DataDirectory) -> str:
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
    return read_response(answer.content, OperatorTokenRead, server=url)


def issue(
    *,
    subject: str,
    lifetime: str = duration_text(DEFAULT_LIFETIME),
    reason: str | None = None,
    data: Path | None = None,
    listen: str | None = None,
    config: Path | None = None,
) -> None:
    """Print a token in a user's name, and nothing else, on stdout.

    It is for operators on the machine itself: whoever can read the keys in the data directory may have it, while the
    process runs and while it does not. It is audited, with the name of who asks.

    Parameters
    ----------
    subject
        The user, by e-mail address or id.
    lifetime
        How long the token is good: at most an hour, such as 5m or 1h.
    reason
        Why it is needed, for the audit.
    data
        The data directory, as for remuda up.
    listen
        HOST:PORT that remuda up will be given, if it does not run now and that is not where it was last.
    config
        The configuration, as for remuda up.

    """
    life = parse_duration(lifetime)
    if life is None or not life or life > MAX_LIFETIME:
        raise Invalid("--lifetime", "is not a duration of at most an hour", remedy="ask for one such as 15m or 1h")
    found = loaded(config, data, listen)
    request = new_request(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        subject=subject,
        life=life,
        operator=_operator(),
        reason=reason or "",
    )
    told = asyncio.run(_issued(found, request))
    say(told.access_token.reveal())
    print(  # noqa: T201  a command line prints
        f"It is good until {told.expiry:%Y-%m-%d %H:%M:%S} UTC, in the name of {told.subject}.", file=sys.stderr
    )


def _operator() -> str:
    """Return who asks: the user of this process, and behind sudo also who that is."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    behind = os.environ.get("SUDO_USER")
    return f"{name} (sudo by {behind})" if behind else name
