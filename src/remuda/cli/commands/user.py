"""Commands ``remuda user`` that need the login of a platform administrator: suspensions and lost second factors.

The password link of an operator is in ``user_password``, which imports much more.
"""

from typing import Annotated

from cyclopts import Parameter

from remuda.cli.crud import confirm
from remuda.cli.lookup import DEFAULT_SCOPE, ScopedSession, ScopeOptions
from remuda.cli.options import Output, Yes
from remuda.cli.output import dump, echo, table, write
from remuda.identity.login.schema import FactorResetWrite
from remuda.identity.suspensions.schema import SuspensionRead, SuspensionWrite
from remuda.kernel.errors import Invalid

_PATH = "/api/v1/suspensions"
_HEADINGS = ("SUBJECT", "SINCE (UTC)", "BY", "REASON")
Email = Annotated[str, Parameter(help="E-mail address of the person.")]


async def suspend(email: Email, /, *, reason: str = "", yes: Yes = False, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Suspend a person in every organization and end all sessions.

    Logins, tokens, browsers and watches of the person end at once, also those of external providers. Memberships stay
    as they are.

    Example::

        remuda user suspend jo@example.com --reason "stolen laptop"

    :param reason: Record this reason; only those who may read suspensions see it.
    """
    async with scope.open() as api:
        confirm(f"{email} will be suspended in every organization and logged out everywhere.", yes=yes)
        body = SuspensionWrite(subject=email, reason=reason)
        done = await api.session.send("POST", "identity", _PATH, body, response_type=SuspensionRead)
    echo(f"{done.subject} is suspended and logged out everywhere. remuda user resume {done.subject} ends that.")


async def resume(email: Email, /, *, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """End the suspension of a person, who then has to log in again.

    Example::

        remuda user resume jo@example.com
    """
    async with scope.open() as api:
        found = [each for each in await _all(api) if each.subject == email.strip().lower()]
        if not found:
            raise Invalid("EMAIL", f"{email} is not suspended", remedy="remuda user suspended lists who is")
        await api.session.send("DELETE", "identity", f"{_PATH}/{found[0].id}", response_type=type(None))
    echo(f"{found[0].subject} can log in again.")


async def suspended(*, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """List the suspended persons.

    Example::

        remuda user suspended
    """
    async with scope.open() as api:
        found = await _all(api)
    if output == "name":
        write("".join(f"{each.subject}\n" for each in found))
    elif output == "table":
        rows = [(each.subject, f"{each.since:%Y-%m-%d %H:%M}", each.by, each.reason) for each in found]
        table(_HEADINGS, rows, empty="No one is suspended.")
    else:
        write(dump(found, output))


async def reset_second_factor(email: Email, /, *, yes: Yes = False, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Remove all second factors of a person who lost them, and end all sessions.

    The person can then log in with the password alone. Make sure first who is asking.

    Example::

        remuda user reset-second-factor jo@example.com
    """
    async with scope.open() as api:
        confirm(f"{email} will be able to log in with the password alone, and is logged out everywhere.", yes=yes)
        body = FactorResetWrite(subject=email)
        await api.session.send("POST", "identity", "/api/v1/secondfactorresets", body, response_type=type(None))
    echo(f"{email} has no second factor any more, and is logged out everywhere.")


async def _all(api: ScopedSession) -> list[SuspensionRead]:
    found = await api.session.list_all("identity", _PATH, SuspensionRead)
    return sorted(found, key=lambda each: each.subject)
