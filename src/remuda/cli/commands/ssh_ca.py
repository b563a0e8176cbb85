"""Commands ``remuda ssh-ca``: SSH certificate authorities whose certificates instances accept."""

import re
from pathlib import Path

from remuda.cli.crud import create_resource, delete_resource, find, list_resources, naming_users, show_resource
from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.options import NEW_METADATA, NO_WAIT, NewMetadataOptions, Output, Watch, Yes, read_text
from remuda.cli.resources import SSH_CA
from remuda.kernel.errors import Invalid
from remuda.region.authorities.schema import AuthorityCreate, AuthorityCreateSpec

_PUBLIC = re.compile(r"[a-z0-9@.-]+[ \t]+AAAA[A-Za-z0-9+/]+=*([ \t].*)?")
"""One line: the type, the key, which begins with its length, and optionally a comment."""


async def list(*, watch: Watch = False, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:  # noqa: A001  the command's name
    """List the SSH certificate authorities of the project.

    Example::

        remuda ssh-ca list -o json
    """
    async with scope.open() as api:
        await list_resources(api, SSH_CA, output, watch=watch)


async def show(authority: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Show an SSH certificate authority.

    Example::

        remuda ssh-ca show team

    :param authority: Name or id of the authority.
    """
    async with scope.open() as api:
        await show_resource(api, SSH_CA, await find(api, SSH_CA, authority), output)


async def create(
    name: str,
    /,
    *,
    key: Path,
    metadata: NewMetadataOptions = NEW_METADATA,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Register an SSH certificate authority, whose key cannot be changed later.

    Example::

        remuda ssh-ca create team --key ca.pub

    :param name: Name of the authority.
    :param key: Read its public key from this file. Private keys are never sent.
    """
    public = _read_public_key(key)
    async with scope.open() as api:
        project = api.require_project()
        spec = AuthorityCreateSpec(organization_id=project.organization, project_id=project.project, public_key=public)
        body = AuthorityCreate(metadata=metadata.metadata(name), spec=spec)
        await show_resource(
            api,
            SSH_CA,
            await create_resource(api, SSH_CA, body, wait=NO_WAIT, duplicates=metadata.allow_duplicate),
            output,
        )


async def delete(authority: str, /, *, yes: Yes = False, scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Delete an SSH certificate authority that no instance uses.

    Example::

        remuda ssh-ca delete team --yes

    :param authority: Name or id of the authority.
    """
    async with scope.open() as api, naming_users(api, SSH_CA, authority):
        await delete_resource(api, SSH_CA, authority, yes=yes, wait=NO_WAIT)


def _read_public_key(path: Path) -> str:
    """Return the public key in a file. Anything else may be the private key and is not sent."""
    text = read_text(path, "--key").strip()
    if "PRIVATE KEY" in text:
        raise Invalid("--key", f"{path} is a private key and was not sent", remedy="name the .pub file")
    if not _PUBLIC.fullmatch(text):
        raise Invalid("--key", f"{path} is not a public key and was not sent", remedy="name the .pub file")
    return text
