"""Stored kinds of identity; `KINDS` has all of them."""

from typing import Any

from remuda.identity.kinds.factors import SECOND_FACTORS
from remuda.identity.kinds.oauth import (
    AUTHORIZATION_CODE,
    BROWSER_LOGIN,
    DEVICE_GRANT,
    OAUTH2_CLIENT,
    OAUTH2_PROVIDER,
    PASSWORD,
    USED_ASSERTION,
    USED_STATE,
)
from remuda.identity.kinds.quotas import ALLOCATION, QUOTA, QUOTA_METADATA
from remuda.identity.kinds.tenancy import BOOTSTRAP, DOMAIN, ORGANIZATION, PROJECT
from remuda.identity.kinds.tokens import REVOCATION, SESSION, SIGNING_KEY
from remuda.identity.kinds.users import GROUP, ORGANIZATION_USER, ROLE, SERVICE_ACCOUNT, USER
from remuda.store.kinds import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind[Any], ...] = (
    ORGANIZATION,
    DOMAIN,
    PROJECT,
    USER,
    ORGANIZATION_USER,
    SERVICE_ACCOUNT,
    GROUP,
    ROLE,
    QUOTA_METADATA,
    QUOTA,
    ALLOCATION,
    OAUTH2_PROVIDER,
    OAUTH2_CLIENT,
    PASSWORD,
    SECOND_FACTORS,
    AUTHORIZATION_CODE,
    DEVICE_GRANT,
    USED_ASSERTION,
    USED_STATE,
    BROWSER_LOGIN,
    SIGNING_KEY,
    SESSION,
    REVOCATION,
    BOOTSTRAP,
)
