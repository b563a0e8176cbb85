"""Command ``remuda user password``: a password link for operators on the machine itself."""

from remuda.cli.commands.config import load_configuration
from remuda.cli.operator import LocalIdentity, OperatorRoute, fulfil, operator_name
from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import echo, echo_error
from remuda.identity.login.passwords import Passwords
from remuda.identity.operator_passwords import (
    PATH,
    OperatorPasswordRead,
    OperatorPasswords,
    OperatorPasswordWrite,
    PasswordRequest,
)
from remuda.identity.operator_requests import request_of
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.service import in_thread

_ROUTE = OperatorRoute(PATH, lambda sealed: OperatorPasswordWrite(request=sealed), OperatorPasswordRead)


async def password(
    email: str,
    /,
    *,
    reason: str | None = None,
    data: DataOption = None,
    listen: str | None = None,
    config: ConfigOption = None,
) -> None:
    """Print a link with which a user can set a password once, for operators on the machine itself.

    The link replaces an earlier one and is valid for 24 hours, while the process runs. The present password stays valid
    until then. The command needs the keys in the data directory, works whether or not the process runs, and is audited
    with your name.

    Example::

        remuda user password admin@remuda.local --data ./data

    :param email: E-mail address or id of the user.
    :param reason: Record this reason in the audit log.
    :param listen: Expect remuda up at this HOST:PORT, if it does not run now and moves to another address.
    """
    found = load_configuration(config, data, listen)
    request = request_of(
        PasswordRequest,
        clock=SystemClock(),
        randomness=SystemRandomness(),
        subject=email,
        operator=operator_name(),
        reason=reason or "",
    )

    async def locally(identity: LocalIdentity) -> OperatorPasswordRead:
        passwords = Passwords(
            store=identity.store,
            clock=identity.clock,
            randomness=identity.randomness,
            run_blocking=in_thread,
            sessions=identity.tokens.sessions,
        )
        return await OperatorPasswords(
            requests=identity.requests, passwords=passwords, settings=identity.settings
        ).create(request)

    created = await fulfil(found, request, _ROUTE, locally)
    echo(created.link.reveal())
    echo_error(
        f"The link sets the password of {created.subject} once, until {created.expiry:%Y-%m-%d %H:%M:%S} UTC. "
        "Anyone who has it can use it: give it to the user only."
    )
