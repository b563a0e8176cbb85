"""Asking a process about itself over its socket; every answer is held against the process's own document."""

from functools import cache
from typing import Any

import httpx2
import msgspec

from remuda.http.openapi import document
from remuda.http.server.health import PROCESS
from tests.kit.asgi.contract import PAGES, Contract, Reply


@cache
def process_contract() -> Contract:
    """Return what the answers of a process about itself are held against."""
    plain = msgspec.json.decode(msgspec.json.encode(document(PROCESS, version="0")))
    return Contract(plain, {**PAGES, "/": "text/html"})


def validated(response: httpx2.Response) -> httpx2.Response:
    """Return an answer of a process about itself, if it is documented."""
    request = response.request
    reply = Reply(response.status_code, dict(response.headers), response.content)
    process_contract().check(request.method, request.url.path, reply)
    return response


def ask(url: str, **options: Any) -> httpx2.Response:
    """Read what a process says about itself."""
    return validated(httpx2.get(url, **options))
