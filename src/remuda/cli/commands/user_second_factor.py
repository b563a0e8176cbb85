"""Command ``remuda user reset-second-factor``, which needs the login of a platform administrator."""

from typing import Annotated

from cyclopts import Parameter

from remuda.cli.crud import confirm
from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.options import Yes
from remuda.cli.output import echo
from remuda.identity.login.schema import FactorResetWrite

Email = Annotated[str, Parameter(help="E-mail address of the person.")]


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
