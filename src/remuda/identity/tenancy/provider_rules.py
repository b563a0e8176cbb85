"""The rules of OAuth2 providers, as pure functions: what may be asked, what is stored of it, how it reads."""

import ipaddress
import re
from datetime import datetime

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import tagged
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.tenancy.schema import ProviderRead, ProviderSpecWire, ProviderWrite
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.resources import conventions as labels
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    read_organization_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.tags import own_tags, replaced_tags

_HOST = r"[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?|\[[0-9A-Fa-f:.]+\]"
_ISSUER = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(:[0-9]{{1,5}})?(/[!$-;=A-Z_a-z~]*)?")


def check_issuer(issuer: str, field: str = "spec.issuer") -> None:
    """Refuse what is no place to ask for tokens: what is not encrypted is read on the way, except on this machine."""
    found = _ISSUER.fullmatch(issuer)
    if found is None or not (found["scheme"] == "https" or _is_loopback(found["host"].strip("[]"))):
        raise Invalid(
            field,
            "is not a URL that can be trusted",
            remedy="write it as https://host/path, without user, query and fragment; http is for this machine alone",
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def new_provider(name: str, organization: Organization, wanted: ProviderWrite, by: Principal) -> OAuth2Provider:
    """Return a provider of an organization as it is stored."""
    metadata = new_metadata(name, wanted.metadata, by, labels={labels.ORGANIZATION: organization.name})
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    tags = own_tags(stored_tags(wanted.metadata), by)
    return OAuth2Provider(metadata=metadata, spec=_spec(OAuth2ProviderSpec(), wanted.spec, tags))


def changed_provider(provider: OAuth2Provider, wanted: ProviderWrite, by: Principal, now: datetime) -> OAuth2Provider:
    """Return a provider with everything replaced that a client may change."""
    metadata = changed_metadata(provider.metadata, wanted.metadata, by.subject, now)
    tags = replaced_tags(provider.spec.tags, stored_tags(wanted.metadata), by)
    return replace(provider, metadata=metadata, spec=_spec(provider.spec, wanted.spec, tags))


def _spec(before: OAuth2ProviderSpec, spec: ProviderSpecWire, tags: tuple[Tag, ...]) -> OAuth2ProviderSpec:
    return replace(
        before,
        issuer=spec.issuer,
        type=spec.type or "custom",
        client_id=spec.client_id,
        client_secret=_secret(before, spec),
        tags=tags,
    )


def _secret(before: OAuth2ProviderSpec, wanted: ProviderSpecWire) -> Secret | None:
    """Return the secret that is good from now on.

    What was left out stays, but goes to nobody else: whoever may change the issuer must not get the secret sent there.
    """
    given = wanted.client_secret
    if given is None:
        return before.client_secret if before.issuer == wanted.issuer else None
    return given if given.reveal() else None


def read_provider(provider: OAuth2Provider) -> ProviderRead:
    """Return a provider as clients read it, without its secret."""
    metadata = replace(provider.metadata, labels={labels.ORGANIZATION: "", **provider.metadata.labels})
    return ProviderRead(
        metadata=read_organization_metadata(metadata, provider.spec.tags), spec=_spec_wire(provider.spec)
    )


def writable_provider(provider: OAuth2Provider) -> ProviderWrite:
    """Return the part of a provider that a client may change and read."""
    return ProviderWrite(
        metadata=writable_metadata(provider.metadata, provider.spec.tags), spec=_spec_wire(provider.spec)
    )


def _spec_wire(spec: OAuth2ProviderSpec) -> ProviderSpecWire:
    known = None if spec.type == "custom" else spec.type
    return ProviderSpecWire(issuer=spec.issuer, client_id=spec.client_id, type=known)


PROVIDER_VIEW = tagged(read_provider, writable_provider)
"""A provider as JSON, with its tag."""
