"""``remuda context``: the logins that there are, and which of them commands use."""

from msgspec.structs import replace

from remuda.cli.client.contexts import Named
from remuda.cli.client.session import Session
from remuda.cli.lookup import logins, organization_called, project_called
from remuda.cli.output import say, table
from remuda.kernel.errors import Unusable


def list() -> None:  # noqa: A001  the command's name
    """List the logins; the one with a star is the one that commands use."""
    all_ = logins().read()
    rows = [
        (
            "*" if name == all_.current else "",
            name,
            each.endpoints.get("identity", "").removesuffix("/identity"),
            each.subject,
            _name(each.organization),
            _name(each.project),
        )
        for name, each in sorted(all_.contexts.items())
    ]
    headings = ("", "NAME", "URL", "SUBJECT", "ORGANIZATION", "PROJECT")
    table(headings, rows, empty="You are not logged in anywhere: say remuda login.")


def use(name: str, /) -> None:
    """Use another login from now on.

    Parameters
    ----------
    name
        Its name.

    """
    file = logins()
    found, _ = file.read().find(name)
    file.change(lambda all_: replace(all_, current=found))
    say(f"Commands now use {found}.")


def set(*, organization: str | None = None, project: str | None = None, context: str | None = None) -> None:  # noqa: A001  same
    """Work in another organization or project from now on.

    Parameters
    ----------
    organization
        Its name or id.
    project
        Its name or id.
    context
        The login to change; by default the current one.

    """
    file = logins()
    name, found = file.read().find(context)
    where, within = found.organization, found.project
    with Session(name, found, file) as session:
        if organization is not None:
            where, within = organization_called(session, organization), None
        if project is not None:
            if where is None:
                raise Unusable("No organization is chosen: say with --organization whose project that is.")
            within = project_called(session, where, project)
        changed = replace(session.context, organization=where, project=within)
    file.change(lambda all_: all_.with_(name, changed))
    say(f"{name} works in the organization {_name(where)}, project {_name(within)}.")


def _name(thing: Named | None) -> str:
    return "-" if thing is None else thing.name
