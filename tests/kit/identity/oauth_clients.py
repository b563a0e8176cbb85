"""Requests to the OAuth client API."""

from typing import Any

from tests.kit.identity.oauth import CALLBACK

CLIENTS = "/api/v1/oauth2clients"


def wanted(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "portal"}, "spec": {"redirectUris": [CALLBACK], **spec}}
