"""What tokens leave behind: the keys that sign them, sessions, and what was revoked before its time."""

from datetime import datetime

from remuda.identity.kinds.common import OURS, SHARED, VERSION
from remuda.kernel.secrets import Secret
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


class PrivateKey(StoredStruct, frozen=True):
    """A key pair that signs, will soon, or did: which, follows from when it and the others were made."""

    pem: Secret
    created: datetime | None = None


class SigningKeySpec(StoredStruct, frozen=True):
    """All key pairs, the newest first. An older one stays for as long as a token of its can be alive."""

    private_keys: tuple[PrivateKey, ...] = ()


class SigningKey(Resource, frozen=True):
    """The keys of this system; there is one such object."""

    spec: SigningKeySpec = SigningKeySpec()


class SessionSpec(StoredStruct, frozen=True):
    """One login: who, through which client, and which refresh token is good for the next pair."""

    user: str = ""
    client: str = ""
    provider: str = ""
    """The id of the provider at which the user logged in; empty for a password of ours."""
    organization: str = ""
    """The organization whose own provider that is: what one organization vouches for is good nowhere else."""
    scope: str = ""
    authenticated: datetime | None = None
    """When the user last proved who they are; refreshing does not move it."""
    expires: datetime | None = None
    """When even refreshing ends."""
    refresh_hash: str = ""
    """The SHA-256 of the refresh token that is good, in hex."""
    family_hash: str = ""
    """The SHA-256 of what all its refresh tokens have in common: whoever shows another one of the family has stolen it,
    or was stolen from, and the session ends. (So no list of the earlier ones is kept, which would only grow.)"""
    code: str = ""
    """The name of the authorization code that it began with."""
    login: str = ""
    """The browser login that it came of (from its code): logging out there ends it."""
    refreshed: datetime | None = None
    """When its refresh token was last used."""
    ended: datetime | None = None
    """Since when it is over: by logging out, or because one of its secrets was used twice."""


class Session(Resource, frozen=True):
    """A login, named by the `sid` of its tokens. A label says of which user."""

    spec: SessionSpec = SessionSpec()


class RevocationSpec(StoredStruct, frozen=True):
    """A token id (`jti`) or session id (`sid`) that is not to be believed any more."""

    revoked: str = ""
    expires: datetime | None = None
    """When no token of that id can be alive any more, so that this can be forgotten."""


class Revocation(Resource, frozen=True):
    """One thing that was revoked. Services in other processes watch these."""

    spec: RevocationSpec = RevocationSpec()


SIGNING_KEY = Kind(type=SigningKey, group=SHARED, version=VERSION, plural="signingkeys")
"""Signing keys."""

SESSION = Kind(
    type=Session,
    group=OURS,
    version=VERSION,
    plural="sessions",
    columns={"User": ".spec.user", "Client": ".spec.client"},
)
"""Sessions, found by the label of their user."""

REVOCATION = Kind(
    type=Revocation,
    group=OURS,
    version=VERSION,
    plural="revocations",
    indexes=(Index(name="revoked", values=lambda revocation: [revocation.spec.revoked]),),
)
"""Revocations, named after what they revoke."""
