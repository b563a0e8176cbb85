"""Command ``remuda token issue``: a break-glass token for operators on the machine itself."""

from remuda.cli.commands.config import load_configuration
from remuda.cli.operator import LocalIdentity, OperatorRoute, fulfil, operator_name
from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import echo, echo_error
from remuda.identity.operator_tokens import (
    DEFAULT_LIFETIME,
    MAX_LIFETIME,
    PATH,
    OperatorTokenRead,
    OperatorTokens,
    OperatorTokenWrite,
    new_request,
)
from remuda.kernel.clock import SystemClock, duration_text, parse_duration
from remuda.kernel.errors import Invalid
from remuda.kernel.randomness import SystemRandomness

_ROUTE = OperatorRoute(PATH, lambda sealed: OperatorTokenWrite(request=sealed), OperatorTokenRead)


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
        operator=operator_name(),
        reason=reason or "",
    )

    async def locally(identity: LocalIdentity) -> OperatorTokenRead:
        return await OperatorTokens(requests=identity.requests, tokens=identity.tokens.tokens).issue(request)

    issued = await fulfil(found, request, _ROUTE, locally)
    echo(issued.access_token.reveal())
    echo_error(f"The token acts as {issued.subject} and is valid until {issued.expiry:%Y-%m-%d %H:%M:%S} UTC.")
