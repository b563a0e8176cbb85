"""Somebody who logs in with a browser, by password, and gets tokens for our command line."""

import base64
import hashlib
import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

from bench.identity.client import Client, Reply
from remuda.http.asgi import ASGIApp
from remuda.identity.oauth.clients import CLI

__all__ = ["log_in", "refreshed"]

_BACK = "http://127.0.0.1:12345/callback"
_VERIFIER = "v" * 64
_CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(_VERIFIER.encode()).digest()).rstrip(b"=").decode()
_ASKED = {
    "client_id": CLI,
    "redirect_uri": _BACK,
    "response_type": "code",
    "scope": "openid email",
    "state": "bench",
    "code_challenge": _CHALLENGE,
    "code_challenge_method": "S256",
}
_STATE = re.compile(r'name="state" value="([^"]*)"')
_TOKEN = "/oauth2/v2/token"


async def log_in(app: ASGIApp, subject: str, password: str) -> str:
    """Go all the way, and return the refresh token."""
    browser = Client(app)
    page = await browser.get("/oauth2/v2/authorization", _ASKED)
    found = _STATE.search(page.body.decode())
    assert found is not None, page
    typed = {"state": unescape(found[1]), "email": subject, "password": password}
    sent = await browser.send_form("/oauth2/v2/login", typed, status=302)
    (code,) = parse_qs(urlsplit(sent.headers[b"location"].decode()).query)["code"]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _BACK, "code_verifier": _VERIFIER}
    return _refresh_token(await browser.send_form(_TOKEN, {**form, "client_id": CLI}))


async def refreshed(app: ASGIApp, token: str) -> str:
    """Exchange a refresh token for the next pair, and return the next one."""
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": CLI}
    return _refresh_token(await Client(app).send_form(_TOKEN, form))


def _refresh_token(reply: Reply) -> str:
    return str(reply.json["refresh_token"])
