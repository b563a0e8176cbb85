"""Logins at OpenStack: a credential with its scope."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from remuda.kernel.secrets import Secret


class CloudLogin(Protocol):
    """Credential and scope of a session. Equal logins share a token."""

    def request(self) -> Mapping[str, object]:
        """Return the `auth` object of a token request."""


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """User with a password, in a domain or in a project."""

    user: str
    password: Secret
    domain: str = ""
    project: str = ""

    def request(self) -> Mapping[str, object]:
        user = {"id": self.user, "password": self.password.reveal()}
        scope = {"project": {"id": self.project}} if self.project else {"domain": {"id": self.domain}}
        return {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}


@dataclass(frozen=True, slots=True)
class ApplicationCredential:
    """Application credential, which has its project and roles in itself."""

    id: str
    secret: Secret

    def request(self) -> Mapping[str, object]:
        credential = {"id": self.id, "secret": self.secret.reveal()}
        return {"identity": {"methods": ["application_credential"], "application_credential": credential}}
