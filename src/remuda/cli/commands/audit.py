"""Commands ``remuda audit``: export of the audit log through the API, and verification of audit files."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from remuda.auditfile.chain import Chain
from remuda.auditfile.verification import BadLine, IntactLines
from remuda.auditfile.verification import verify as verify_files
from remuda.cli.commands.config import load_configuration
from remuda.cli.lookup import DEFAULT_SCOPE, ScopeOptions
from remuda.cli.options import ConfigOption, DataOption, Flag
from remuda.cli.output import echo, write
from remuda.datadir import DataDirectory
from remuda.identity.audit import EntryRead
from remuda.kernel.errors import Forbidden, Invalid, Unusable

_NEEDS_PLATFORM_ADMINISTRATOR = (
    "The records that belong to no organization are for platform administrators: log in as one, or leave out --system "
    "for the records of an organization."
)


async def export(
    *,
    system: Annotated[
        Flag, Parameter(help="Export the records that belong to no organization, as a platform administrator.")
    ] = False,
    since: str | None = None,
    until: str | None = None,
    actor: str | None = None,
    resource: str | None = None,
    resource_id: str | None = None,
    status: str | None = None,
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Print audit records of the organization as lines of JSON, the latest first.

    Example::

        remuda audit export --since 2026-01-01T00:00:00Z --status 4xx > refused.jsonl

    :param since: Export no record from before this time, such as 2026-01-31T12:00:00Z.
    :param until: Export no record from after this time.
    :param actor: Export what this subject, actor, service, or service account of this name did.
    :param resource: Export what was done to resources of this type, such as instances.
    :param resource_id: Export what was done to the resource with this id.
    :param status: Export requests with this result, such as 403 or 4xx.
    """
    query = {"since": since, "until": until, "actor": actor, "resource": resource, "resourceID": resource_id}
    async with scope.open() as api:
        path = "/api/v1/audit" if system else f"/api/v1/organizations/{api.require_organization()}/audit"
        try:
            async for page in api.session.pages("identity", path, EntryRead, {**query, "status": status}):
                write("".join(f"{msgspec.json.encode(each).decode()}\n" for each in page))
        except Forbidden:
            if system:
                raise Forbidden(_NEEDS_PLATFORM_ADMINISTRATOR) from None
            raise


def verify(
    file: Path,
    /,
    *files: Path,
    first: Annotated[
        int,
        Parameter(name="--from", help="The record with which the first file must begin, if older files are elsewhere."),
    ] = 1,
    part: Annotated[Flag, Parameter(help="Do not expect that the last file reaches the end of the log.")] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Check that no line of an audit file was changed, removed, moved or cut off.

    It reads the keys in the data directory. Name rotated files first, the oldest before the others. The records must
    begin with the first one of the log, or with that of ``--from``.

    Example::

        remuda audit verify audit.jsonl.1 audit.jsonl --data ./data

    :param file: The audit file.
    :param files: Further files that continue it.
    """
    if first < 1:
        raise Invalid("--from", "is not positive", remedy="name the number of a record: the first one is 1")
    directory = DataDirectory(load_configuration(config, data, None).configuration.server.data)
    chain = Chain(directory.sealer())
    head = None if part else chain.read_head(directory.audit_head)
    if head is None and not part:
        remedy = "restore it, or verify with --part, which does not find lines that were cut off at the end"
        raise Invalid(str(directory.audit_head), "does not exist", remedy=remedy)
    found = verify_files(chain, (file, *files), head, first=first)
    if isinstance(found, BadLine):
        raise Unusable(f"{found}. What comes before this line is intact.")
    echo(_summary(found))


def _summary(found: IntactLines) -> str:
    if not found.last:
        return "The files have no records."
    partial = " The last line is not complete: it is being written, or a crash has interrupted it."
    text = f"Records {found.first} to {found.last} are intact."
    return text + partial if found.is_last_partial else text
