"""Command ``remuda token issue``: a break-glass token for operators on the machine itself.

The lock of the store tells whether a process runs, since no process can leave it behind. If the lock is free, the store
is opened here; otherwise the request is sent to the address that the process has published.
"""

import os
import pwd

from remuda.app import IDENTITY_PREFIX, registry
from remuda.cli.client.transport import Connections
from remuda.cli.commands.config import load_configuration
from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import echo, echo_error
from remuda.config.loader import LoadedConfiguration
from remuda.config.reach import public_url
from remuda.config.settings import identity_settings
from remuda.datadir import DataDirectory
from remuda.http.transport import OutboundRequest, encode_body, read_response
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
from remuda.kernel.clock import SystemClock, duration_text, parse_duration
from remuda.kernel.errors import Invalid, OutcomeUnknown, ServerUnreachable, StoreLocked, Unavailable
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.sqlite.store import SqliteStore, open_store


async def _issue(found: LoadedConfiguration, request: OperatorRequest) -> OperatorTokenRead:
    data = DataDirectory(found.configuration.server.data)
    if not data.store.exists():
        raise Invalid("--data", f"{data.path} has no store", remedy="name the data directory of remuda up")
    data.check_store()
    sealer = data.sealer()
    try:
        store = open_store(data.store, registry(), sealer)
    except StoreLocked:
        return await _send(data, request, sealer)
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
    """Return the URL of the process: the configured one, or the one of its last run."""
    server = found.configuration.server
    configured = public_url(server, server.listen)
    if server.public_url or ("server.listen" in found.origins and server.listen.port):
        return configured
    last = CredentialsFile(data.credentials).read()
    known = "" if last is None else last.endpoints.get("identity", "").removesuffix(IDENTITY_PREFIX)
    return known or configured


async def _send(data: DataDirectory, request: OperatorRequest, sealer: Sealer) -> OperatorTokenRead:
    url = data.running_at()
    if url is None:
        message = f"Another process has {data.store} open and has not published its address: try again in a moment."
        raise Unavailable(message)
    body = encode_body(OperatorTokenWrite(request=seal_request(request, sealer)))
    outbound = OutboundRequest(name="issue token", method="POST", target=f"{IDENTITY_PREFIX}{PATH}", body=body)
    try:
        async with Connections(certificate=data.certificate_of_process()) as connections:
            response = await connections.at(url)[0].exchange(outbound)
    except (ServerUnreachable, OutcomeUnknown) as error:
        message = f"The process that has {data.store} open does not respond: {error.message}"
        raise Unavailable(message) from None
    return read_response(response.content, OperatorTokenRead, server=url)


async def issue(
    *,
    subject: str,
    lifetime: str = duration_text(DEFAULT_LIFETIME),
    reason: str | None = None,
    data: DataOption = None,
    listen: str | None = None,
    config: ConfigOption = None,
) -> None:
    """Print a short-lived token that acts as a user, for operators on the machine itself.

    It needs the keys in the data directory, works whether or not the process runs, and is audited with your name.

    Example::

        remuda token issue --subject admin@remuda.local --data ./data

    :param subject: Issue the token for this user, by e-mail address or id.
    :param lifetime: Let the token expire after this time, at most an hour, such as 5m or 1h.
    :param reason: Record this reason in the audit log.
    :param listen: Expect remuda up at this HOST:PORT, if it does not run now and moves to another address.
    """
    duration = parse_duration(lifetime)
    if duration is None or not duration or duration > MAX_LIFETIME:
        raise Invalid("--lifetime", "is not a duration of at most an hour", remedy="give one such as 15m or 1h")
    found = load_configuration(config, data, listen)
    request = new_request(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        subject=subject,
        lifetime=duration,
        operator=_operator(),
        reason=reason or "",
    )
    issued = await _issue(found, request)
    echo(issued.access_token.reveal())
    echo_error(f"The token acts as {issued.subject} and is valid until {issued.expiry:%Y-%m-%d %H:%M:%S} UTC.")


def _operator() -> str:
    """Return the user of this process, with the user who called sudo."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    behind = os.environ.get("SUDO_USER")
    return f"{name} (sudo by {behind})" if behind else name
