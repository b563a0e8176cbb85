"""Commands of an operator on the machine, and what their results open."""

from collections.abc import Mapping
from pathlib import Path

import httpx2

from tests.kit.processes.program import Running, remuda

ADMIN = ("--subject", "admin@remuda.local")


def issue(data: Path, *words: str, environment: Mapping[str, str] | None = None) -> str:
    told = remuda("token", "issue", "--data", str(data), *words, environment=environment)
    assert told.returncode == 0, told.stderr
    assert told.stderr.startswith("The token acts as admin@remuda.local and is valid until ")
    return told.stdout.strip()


def organizations(one: Running, token: str) -> httpx2.Response:
    url = f"{one.url}/identity/api/v1/organizations"
    return httpx2.get(url, headers={"Authorization": f"Bearer {token}"})
