"""Commands ``remuda context``: login contexts, and which of them commands use."""

from msgspec.structs import replace

from remuda.cli.client.contexts import NamedId
from remuda.cli.client.session import ClientSession
from remuda.cli.lookup import contexts_file, find_organization, find_project
from remuda.cli.output import echo, table


def list() -> None:  # noqa: A001  the command's name
    """List the login contexts and mark the current one.

    Example::

        remuda context list
    """
    contexts = contexts_file().read()
    rows = [
        (
            "*" if name == contexts.current else "",
            name,
            each.endpoints.get("identity", "").removesuffix("/identity"),
            each.subject,
            _name(each.organization),
            _name(each.project),
        )
        for name, each in sorted(contexts.contexts.items())
    ]
    headings = ("", "NAME", "URL", "SUBJECT", "ORGANIZATION", "PROJECT")
    table(headings, rows, empty="No login context found: run remuda login.")


def use(name: str, /) -> None:
    """Make a login context the current one.

    Example::

        remuda context use production

    :param name: Name of the context.
    """
    file = contexts_file()
    found, _ = file.read().find(name)
    file.update(lambda contexts: replace(contexts, current=found))
    echo(f"The current context is {found}.")


async def set(*, organization: str | None = None, project: str | None = None, context: str | None = None) -> None:  # noqa: A001  same
    """Change the organization or project of a login context.

    Example::

        remuda context set --organization acme --project staging

    :param organization: Work in this organization, by name or id.
    :param project: Work in this project, by name or id.
    :param context: Change this context instead of the current one.
    """
    file = contexts_file()
    name, found = file.read().find(context)
    new_organization, new_project = found.organization, found.project
    async with ClientSession(name, found, file) as session:
        if organization is not None:
            new_organization, new_project = await find_organization(session, organization), None
        if project is not None:
            new_project = await find_project(session, new_organization, project)
        updated = replace(session.context, organization=new_organization, project=new_project)
    file.update(lambda contexts: contexts.with_context(name, updated))
    echo(f"The context {name} uses the organization {_name(new_organization)}, project {_name(new_project)}.")


def _name(found: NamedId | None) -> str:
    return "-" if found is None else found.name
