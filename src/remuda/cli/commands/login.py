"""``remuda login`` and ``remuda logout``: as whom commands ask, and where."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from remuda.cli.client.contexts import Context, Named, Tokens
from remuda.cli.client.oauth import Invitation, log_in
from remuda.cli.client.session import Session
from remuda.cli.client.transport import pause
from remuda.cli.lookup import logins, organization_called, project_called
from remuda.cli.output import say
from remuda.kernel.errors import Invalid, RemudaError, Unauthenticated, Unavailable
from remuda.kernel.secrets import Secret, hide

_NEAR = "http://127.0.0.1:8080"
_SERVICES = ("identity", "region", "compute")


class _Credentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a first start leaves for scripts, as far as it is needed here."""

    endpoints: dict[str, str]
    token: Secret
    organization_id: str | None = None
    project_id: str | None = None


def login(
    url: str | None = None,
    /,
    *,
    name: str = "default",
    credentials: Path | None = None,
    organization: str | None = None,
    project: str | None = None,
) -> None:
    """Log in, so that all other commands know where to ask, and as whom.

    A browser asks who you are, on this machine or any other. The login is kept in ~/.config/remuda/contexts.json,
    which only you can read. There can be several, each a context with a name; see remuda context.

    Parameters
    ----------
    url
        Where the Remuda is; by default http://127.0.0.1:8080, or where the credentials say.
    name
        What to call this login.
    credentials
        The credentials.json of a remuda up on this machine: log in as its service account, without a browser.
    organization
        The organization to work in, by name or id. It need not be said where there is only one.
    project
        The project to work in, likewise.

    """
    if not name:
        raise Invalid("--name", "is empty", remedy="give the login a name such as work")
    file = logins()
    file.read()
    if credentials is None:
        context = _from_browser(_endpoints(url or _NEAR))
    else:
        found = _read(credentials)
        endpoints = found.endpoints if url is None else _endpoints(url)
        context = Context(endpoints=endpoints, tokens=Tokens(access=found.token))
        organization, project = organization or found.organization_id, project or found.project_id
    with Session(name, context, file) as session, _trusting(credentials, context):
        context = _placed(session, organization, project)
    file.change(lambda all_: replace(all_.with_(name, context), current=name))
    say(f"You are logged in as {context.subject}, {_where(context)}.")


def logout(name: str | None = None, /) -> None:
    """End a login, and forget it here.

    Parameters
    ----------
    name
        The context; by default the current one.

    """
    file = logins()
    found, context = file.read().find(name)
    told = f"You are logged out of {found}."
    try:
        with Session(found, context, file) as session:
            session.end()
    except Unavailable as trouble:
        told = f"{found} is forgotten here. There it ends by itself, since nobody could be told: {trouble.message}"
    left = file.change(lambda all_: all_.without(found))
    say(told if left.current or not left.contexts else f"{told} To go on as another, {left.choosing}.")


def _endpoints(url: str) -> dict[str, str]:
    return {service: f"{url.rstrip('/')}/{service}" for service in _SERVICES}


def _from_browser(endpoints: dict[str, str]) -> Context:
    return Context(endpoints=endpoints, tokens=log_in(endpoints["identity"], _invite, pause))


def _invite(invitation: Invitation) -> None:
    say(f"Open {invitation.verification_uri_complete} in a browser and let the code {invitation.user_code} in.")


def _read(path: Path) -> _Credentials:
    remedy = "name the one that remuda up made in its data directory"
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Credentials, dec_hook=hide)
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid("--credentials", f"{path} cannot be read ({cause})", remedy=remedy) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Invalid("--credentials", f"{path} is no credentials.json", remedy=remedy) from None


@contextmanager
def _trusting(credentials: Path | None, context: Context) -> Iterator[None]:
    """Have the refusal of a token say where that is from: nobody was logged in with it before."""
    try:
        yield
    except Unauthenticated:
        if credentials is None:
            raise
        where = context.endpoints.get("identity", "").removesuffix("/identity")
        remedy = "name the one in the data directory of the remuda up that runs there"
        raise Invalid("--credentials", f"{credentials} has a token that {where} does not take", remedy=remedy) from None


def _placed(session: Session, organization: str | None, project: str | None) -> Context:
    """Return a context that says who somebody is and where they work, as far as that is clear."""
    who = session.get("identity", "/oauth2/v2/userinfo")
    chosen = _only(session, "/api/v1/organizations") if organization is None else None
    if organization is not None:
        chosen = organization_called(session, organization)
    within = None
    if chosen is not None:
        path = f"/api/v1/organizations/{chosen.id}/projects"
        within = _only(session, path) if project is None else project_called(session, chosen, project)
    return replace(session.context, subject=_subject(who), organization=chosen, project=within)


def _subject(who: Any) -> str:
    return str(who.get("email") or f"the service account {who['sub']}")


def _only(session: Session, path: str) -> Named | None:
    """Return the one thing that there is, if there is one; who may not see any has none."""
    try:
        found = session.get("identity", path)
    except RemudaError:
        return None
    metadata = found[0]["metadata"] if len(found) == 1 else None
    return None if metadata is None else Named(id=metadata["id"], name=metadata["name"])


def _where(context: Context) -> str:
    if context.organization is None or context.project is None:
        return "and work in no project yet: choose one with remuda context set"
    return f"and work in the project {context.project.name} of the organization {context.organization.name}"
