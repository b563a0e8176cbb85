"""``remuda ssh-ca``: authorities whose certificates open instances."""

import re
from pathlib import Path

from remuda.cli.crud import delete_one, find, list_all, make_one, naming_holders, show_found
from remuda.cli.lookup import HERE, Where
from remuda.cli.options import ABOUT, AT_ONCE, About, Output, Watch, Yes, text_of
from remuda.cli.resources import SSH_CA
from remuda.kernel.errors import Invalid

_PUBLIC = re.compile(r"[a-z0-9@.-]+[ \t]+AAAA[A-Za-z0-9+/]+=*([ \t].*)?")
"""One line: its type, the key, which begins with how long that is, and maybe a comment."""


def list(*, watch: Watch = False, output: Output = "table", where: Where = HERE) -> None:  # noqa: A001  the command's name
    """List the SSH certificate authorities of the project."""
    with where.open() as asked:
        list_all(asked, SSH_CA, output, watch=watch)


def show(authority: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Show an SSH certificate authority.

    Parameters
    ----------
    authority
        Its name or id.

    """
    with where.open() as asked:
        show_found(asked, SSH_CA, find(asked, SSH_CA, authority), output)


def create(name: str, /, *, key: Path, about: About = ABOUT, output: Output = "table", where: Where = HERE) -> None:
    """Make an SSH certificate authority known: instances can be opened with its certificates. Its key stays as it is.

    Parameters
    ----------
    name
        What to call it.
    key
        The file with its public key, such as ca.pub. Its private key stays with you.

    """
    public = _public(key)
    with where.open() as asked:
        place = asked.needs_project()
        spec = {"organizationId": place.organization, "projectId": place.project, "publicKey": public}
        body = {"metadata": about.metadata({"name": name}), "spec": spec}
        show_found(asked, SSH_CA, make_one(asked, SSH_CA, body, waiting=AT_ONCE), output)


def delete(authority: str, /, *, yes: Yes = False, where: Where = HERE) -> None:
    """Forget an SSH certificate authority. While an instance has it, it stays.

    Parameters
    ----------
    authority
        Its name or id.

    """
    with where.open() as asked, naming_holders(asked, SSH_CA, authority):
        delete_one(asked, SSH_CA, authority, yes=yes, waiting=AT_ONCE)


def _public(path: Path) -> str:
    """Return the public key in a file; what is none does not leave this machine, for it may be the private one."""
    text = text_of(path, "--key").strip()
    if "PRIVATE KEY" in text:
        raise Invalid("--key", f"{path} is a private key, and was not sent", remedy="name the .pub file")
    if not _PUBLIC.fullmatch(text):
        raise Invalid("--key", f"{path} is not one public key, and was not sent", remedy="name the .pub file")
    return text
