"""Probe of the account that a region is given, step by step, so that each mistake has an error of its own.

Keystone itself responds with 401 to nearly all of them.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import msgspec

from remuda.kernel.errors import ServerUnreachable
from remuda.kernel.secrets import Secret
from remuda.providers.openstack.client import OpenStackClient
from remuda.providers.openstack.tenancies import Manager

ProbeField = Literal["endpoint", "region", "caCertificate", "domainName", "userName", "password"]
"""Setting to which a problem belongs."""

_MANAGER = "manager"
_TIMEOUT_S = 20.0
_UNAUTHORIZED, _CREATED = 401, 201
_JSON = {"Content-Type": "application/json"}


class ProbeFailed(Exception):  # noqa: N818  it states what happened
    """Raised for a setting with which the cloud cannot be used."""

    def __init__(self, field: ProbeField, problem: str, remedy: str) -> None:
        super().__init__(f"{field} {problem}: {remedy}")
        self.field, self.problem, self.remedy = field, problem, remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerNames:
    """Account and domain, each by its id or else by its name."""

    password: Secret
    user_id: str = ""
    user_name: str = ""
    user_domain_name: str = ""
    """Domain of the user; empty for the domain that it manages."""
    domain_id: str = ""
    domain_name: str = ""

    @property
    def domain(self) -> Mapping[str, str]:
        return {"id": self.domain_id} if self.domain_id else {"name": self.domain_name}

    def auth(self, scope: object) -> Mapping[str, object]:
        """Return the body of a token request."""
        user: dict[str, object] = {"password": self.password.reveal()}
        if self.user_id:
            user["id"] = self.user_id
        else:
            domain = {"name": self.user_domain_name} if self.user_domain_name else self.domain
            user |= {"name": self.user_name, "domain": domain}
        methods = {"methods": ["password"], "password": {"user": user}}
        return {"auth": {"identity": methods, "scope": scope}}


class _Named(msgspec.Struct, frozen=True):
    id: str
    name: str = ""


class _Token(msgspec.Struct, frozen=True):
    user: _Named
    domain: _Named | None = None
    roles: tuple[_Named, ...] = ()


class _TokenBody(msgspec.Struct, frozen=True):
    token: _Token


async def find_manager(client: OpenStackClient, names: ManagerNames) -> Manager:
    """Return the account with its ids, or raise ProbeFailed unless it manages its domain."""
    await _discover(client)
    unscoped = await _log_in(client, names, "unscoped")
    if unscoped is None:
        who = names.user_name or names.user_id
        raise ProbeFailed(
            "password",
            f"is not accepted for the user {who}, or its domain has no such user",
            "check password, userName and userDomainName",
        )
    token = await _log_in(client, names, {"domain": names.domain})
    if token is None:
        raise await _no_role(client, names, unscoped)
    body = _token(token)
    if _MANAGER not in {role.name for role in body.roles} or body.domain is None:
        raise _missing_role(names)
    return Manager(body.user.id, body.domain.id, names.password)


async def _discover(client: OpenStackClient) -> None:
    """Raise ProbeFailed unless the endpoint is that of Keystone, in version 3."""
    url = client.address.auth_url.rstrip("/")
    remedy = "write the URL of Keystone with its version, such as https://cloud.example.com:5000/v3"
    try:
        body = msgspec.json.decode((await _send(client, "GET", url)).content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ProbeFailed("endpoint", "is not Keystone", remedy) from None
    if isinstance(body, dict) and isinstance(body.get("versions"), dict):  # other services have a list there
        raise ProbeFailed("endpoint", "has no version", f"append it, as in {url}/v3")
    version = body.get("version") if isinstance(body, dict) else None
    identity = version.get("id") if isinstance(version, dict) else None
    if not (isinstance(identity, str) and identity.startswith("v3")):
        raise ProbeFailed("endpoint", "is not Keystone", remedy)


async def _log_in(client: OpenStackClient, names: ManagerNames, scope: object) -> httpx2.Response | None:
    url = f"{client.address.auth_url.rstrip('/')}/auth/tokens"
    response = await _send(client, "POST", url, content=msgspec.json.encode(names.auth(scope)), headers=_JSON)
    if response.status_code == _CREATED:
        return response
    if response.status_code != _UNAUTHORIZED:
        problem = f"responds to a login with status {response.status_code}"
        raise ProbeFailed("endpoint", problem, "try again, or look into the log of Keystone")
    return None


async def _no_role(client: OpenStackClient, names: ManagerNames, unscoped: httpx2.Response) -> ProbeFailed:
    """Return why an account that exists cannot log in to the domain."""
    headers = {"X-Auth-Token": unscoped.headers["X-Subject-Token"]}
    url = f"{client.address.auth_url.rstrip('/')}/auth/domains"
    response = await _send(client, "GET", url, headers=headers)
    try:
        found = msgspec.json.decode(response.content, type=dict[str, Any]).get("domains", [])
        domains = sorted(str(each["name"]) for each in found)
    except (msgspec.MsgspecError, KeyError, TypeError):
        domains = []
    if domains:
        return ProbeFailed(
            "domainName", "is not a domain in which the user has a role", f"it has one in {', '.join(domains)}"
        )
    return _missing_role(names)


def _missing_role(names: ManagerNames) -> ProbeFailed:
    domain = names.domain_name or names.domain_id
    who = names.user_name or names.user_id
    user_domain = "" if names.user_id else f" --user-domain {names.user_domain_name or domain}"
    remedy = f"openstack role add --user {who}{user_domain} --domain {domain} {_MANAGER}"
    return ProbeFailed("userName", f"has not the role {_MANAGER} in the domain {domain}, or there is none", remedy)


def _token(response: httpx2.Response) -> _Token:
    try:
        return msgspec.json.decode(response.content, type=_TokenBody).token
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ProbeFailed("endpoint", "responds to a login with something else than a token", "check the URL") from None


async def _send(
    client: OpenStackClient, method: str, url: str, *, headers: Mapping[str, str] = {}, content: bytes | None = None
) -> httpx2.Response:
    with _connection_problems():
        async with asyncio.timeout(_TIMEOUT_S):
            return await client.send(method, url, headers=headers, content=content)


@contextmanager
def _connection_problems() -> Iterator[None]:
    """Raise ProbeFailed if no response came."""
    try:
        yield
    except ServerUnreachable as error:
        raise _unreachable(error.cause) from None
    except TimeoutError:
        raise ProbeFailed("endpoint", f"does not respond within {_TIMEOUT_S:g} s", "check it, and firewalls") from None
    except ConnectionError:
        raise ProbeFailed("endpoint", "does not speak HTTP, or closes the connection", "check the URL") from None


_CERTIFICATE_PROBLEMS: Sequence[tuple[str, ProbeField, str, str]] = (
    ("has expired", "endpoint", "has a certificate that has expired", "renew the certificate of the cloud"),
    ("not yet valid", "endpoint", "has a certificate that is not valid yet", "check the clocks, or the certificate"),
    (
        "mismatch",
        "endpoint",
        "has a certificate for another host name",
        "write the name that is in the certificate",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "caCertificate",
        "has not signed the certificate of the endpoint",
        "give the PEM of the authority that has, which clouds.yaml names as cacert",
    ),
)


def _unreachable(reason: str) -> ProbeFailed:
    for text, field, problem, remedy in _CERTIFICATE_PROBLEMS:
        if text in reason:
            return ProbeFailed(field, problem, remedy)
    return ProbeFailed("endpoint", f"cannot be connected to ({reason})", "check host name and port, and firewalls")
