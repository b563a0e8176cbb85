"""``remuda token issue``: a short token for whoever sits at the machine itself."""

import asyncio
import os
import pwd
import sys
from pathlib import Path

from remuda.cli.commands.config import loaded
from remuda.cli.commands.token import issue as issue_token
from remuda.cli.output import say
from remuda.config.durations import duration_text, parse_duration
from remuda.identity.operator_tokens import DEFAULT_LIFE, LONGEST_LIFE, new_request
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid
from remuda.kernel.randomness import SystemRandomness


def issue(
    *,
    subject: str,
    lifetime: str = duration_text(DEFAULT_LIFE),
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
    if life is None or not life or life > LONGEST_LIFE:
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
    told = asyncio.run(issue_token(found, request))
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
