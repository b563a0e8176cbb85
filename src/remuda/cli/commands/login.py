"""Commands ``remuda login`` and ``remuda logout``."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from remuda.cli.client.contexts import LoginContext, LoginTokens, NamedId
from remuda.cli.client.oauth import DeviceAuthorizationResponse, log_in
from remuda.cli.client.pins import certificate_to_pin
from remuda.cli.client.session import ClientSession
from remuda.cli.client.transport import Connections
from remuda.cli.crud import confirm
from remuda.cli.lookup import NamedResource, contexts_file, find_organization, find_project
from remuda.cli.output import echo, is_terminal
from remuda.cli.progress import sleep
from remuda.kernel.errors import Invalid, RemudaError, Unauthenticated, Unavailable, Unusable
from remuda.kernel.names import display_name
from remuda.kernel.secrets import Secret, hide

_DEFAULT_URL = "http://127.0.0.1:8080"
_SERVICES = ("identity", "region", "compute")


class _Credentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of `credentials.json` that a login needs."""

    endpoints: dict[str, str]
    token: Secret
    organization_id: str | None = None
    project_id: str | None = None


class _Userinfo(msgspec.Struct, frozen=True):
    """The part of the userinfo response (OpenID Connect) that names the user."""

    sub: str
    email: str = ""
    name: str = ""


async def login(
    url: str | None = None,
    /,
    *,
    name: str = "default",
    credentials: Path | None = None,
    organization: str | None = None,
    project: str | None = None,
    fingerprint: str | None = None,
) -> None:
    """Log in with a browser or as a service account.

    The login is saved as a context in ~/.config/remuda/contexts.json, which only you can read.

    Example::

        remuda login http://127.0.0.1:8080
        remuda login --credentials data/credentials.json

    :param url: URL of Remuda. The default is http://127.0.0.1:8080, or the URL in the credentials.
    :param name: Save the login under this context name.
    :param credentials: Log in as the service account of this credentials.json, which remuda up writes, without a
        browser.
    :param organization: Work in this organization, by name or id. Needed only if there are several.
    :param project: Work in this project, by name or id. Needed only if there are several.
    :param fingerprint: Trust the server's certificate if this is its SHA-256 fingerprint, without a question about one
        that this machine does not know.
    """
    if not name:
        raise Invalid("--name", "is empty", remedy="give the login a name such as work")
    file = contexts_file()
    file.read()
    if credentials is None:
        endpoints = _endpoints(url or _DEFAULT_URL)
        context = await _log_in(endpoints, await _certificate(endpoints, fingerprint))
    else:
        found = _read_credentials(credentials)
        endpoints = found.endpoints if url is None else _endpoints(url)
        certificate = await _certificate(endpoints, fingerprint, credentials.parent)
        tokens = LoginTokens(access=found.token)
        context = LoginContext(endpoints=endpoints, tokens=tokens, certificate=certificate)
        organization, project = organization or found.organization_id, project or found.project_id
    with _naming_credentials(credentials, context):
        async with ClientSession(name, context, file) as session:
            context = await _scoped(session, organization, project)
    file.update(lambda contexts: replace(contexts.with_context(name, context), current=name))
    echo(f"You are logged in as {context.subject}{_scope_text(context)}.")


async def logout(name: str | None = None, /) -> None:
    """Log out and delete the login context.

    Example::

        remuda logout

    :param name: Name of the context. The default is the current one.
    """
    file = contexts_file()
    found, context = file.read().find(name)
    result = f"You are logged out of {found}."
    try:
        async with ClientSession(found, context, file) as session:
            await session.revoke()
    except Unavailable as error:
        result = f"The context {found} was deleted. Its login stays valid until it expires: {error.message}"
    left = file.update(lambda contexts: contexts.without(found))
    echo(result if left.current or not left.contexts else f"{result} To use another login, {left.remedy}.")


def _endpoints(url: str) -> dict[str, str]:
    return {service: f"{url.rstrip('/')}/{service}" for service in _SERVICES}


async def _certificate(endpoints: dict[str, str], expected: str | None, directory: Path | None = None) -> str:
    """Return the certificate to pin, if any. That of the process of a data directory on this machine is known."""
    from remuda.datadir import DataDirectory, default_directory  # noqa: PLC0415  slow to import and rarely needed

    named = os.environ.get("REMUDA_DATA")
    candidates = (directory, Path(named) if named else None, default_directory(os.environ))
    local = [DataDirectory(path) for path in candidates if path is not None]
    return await certificate_to_pin(endpoints["identity"], expected=expected, local=local, ask=_ask)


def _ask(question: str) -> None:
    if not is_terminal(sys.stdin):
        raise Unusable(f"{question} Then add --fingerprint to trust it.")
    confirm(question, yes=False)


async def _log_in(endpoints: dict[str, str], certificate: str) -> LoginContext:
    async with Connections(certificate=certificate) as connections:
        tokens = await log_in(connections, endpoints["identity"], _announce, sleep)
    return LoginContext(endpoints=endpoints, tokens=tokens, certificate=certificate)


def _announce(device: DeviceAuthorizationResponse) -> None:
    echo(f"Open {device.verification_uri_complete} in a browser and confirm the code {device.user_code}.")


def _read_credentials(path: Path) -> _Credentials:
    remedy = "name the file that remuda up wrote to its data directory"
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Credentials, dec_hook=hide)
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid("--credentials", f"{path} cannot be read ({cause})", remedy=remedy) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Invalid("--credentials", f"{path} is not a credentials.json", remedy=remedy) from None


@contextmanager
def _naming_credentials(credentials: Path | None, context: LoginContext) -> Iterator[None]:
    """Name the credentials file in the error that rejects its token."""
    try:
        yield
    except Unauthenticated:
        if credentials is None:
            raise
        url = context.endpoints.get("identity", "").removesuffix("/identity")
        remedy = "name the file in the data directory of the remuda up that runs there"
        raise Invalid("--credentials", f"{credentials} has a token that {url} rejects", remedy=remedy) from None


async def _scoped(session: ClientSession, organization: str | None, project: str | None) -> LoginContext:
    """Return the context with its subject, and with an organization and a project if these are unambiguous."""
    user = await session.get("identity", "/oauth2/v2/userinfo", _Userinfo)
    subject = user.email or f"the service account {display_name(user.name) or user.sub}"
    if organization is None:
        in_organization = await _only_one(session, "/api/v1/organizations")
    else:
        in_organization = await find_organization(session, organization)
    in_project = None
    if project is not None and in_organization is not None:
        in_project = await find_project(session, in_organization, project)
    elif in_organization is not None:
        in_project = await _only_one(session, f"/api/v1/organizations/{in_organization.id}/projects")
    return replace(session.context, subject=subject, organization=in_organization, project=in_project)


async def _only_one(session: ClientSession, path: str) -> NamedId | None:
    """Return the only item of a list; None if there are several, or none that the user may read."""
    try:
        found = await session.get("identity", path, list[NamedResource])
    except RemudaError:
        return None
    return found[0].metadata if len(found) == 1 else None


def _scope_text(context: LoginContext) -> str:
    if context.organization is None or context.project is None:
        return ", without a project: choose one with remuda context set"
    return f" in the project {context.project.name} of the organization {context.organization.name}"
