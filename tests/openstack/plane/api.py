"""Client of the APIs of a plane, for tests that look at it beside the program under test."""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.openstack.plane.configuration import PASSWORD, Configuration

MICROVERSIONS = {
    "nova": ("OpenStack-API-Version", "compute 2.90"),
    "placement": ("OpenStack-API-Version", "placement 1.36"),
}
SETTLED_WITHIN_S = 120
POLL_S = 0.2
DOMAIN_ADMIN_PROJECT = {"project": {"name": "admin", "domain": {"id": "default"}}}


class Session:
    """A user of one scope: the administrator, or the domain manager in the domain or in a project of it."""

    def __init__(self, configuration: Configuration, user: Mapping[str, Any], scope: Mapping[str, Any]) -> None:
        self._configuration = configuration
        identity = {"methods": ["password"], "password": {"user": {"password": PASSWORD, **user}}}
        body = {"auth": {"identity": identity, "scope": scope}}
        _, headers, answer = self._exchange("POST", configuration.endpoint("keystone") + "/auth/tokens", body, {})
        if "token" not in answer:
            raise AssertionError(answer)
        self.token: Any = answer["token"]
        self._headers = {"X-Auth-Token": headers["X-Subject-Token"]}

    @classmethod
    def admin(cls, configuration: Configuration) -> "Session":
        return cls(configuration, {"name": "admin", "domain": {"id": "default"}}, DOMAIN_ADMIN_PROJECT)

    @classmethod
    def manager(cls, configuration: Configuration, project: str | None = None) -> "Session":
        """Return the credential that a region is given, in its domain or in one of its projects."""
        scope = {"domain": {"name": "managed"}} if project is None else {"project": {"id": project}}
        return cls(configuration, {"name": "manager", "domain": {"name": "managed"}}, scope)

    def request(self, method: str, service: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request; return the status, and the answer as JSON or else as text."""
        headers = self._headers | dict([MICROVERSIONS[service]] if service in MICROVERSIONS else [])
        status, _, answer = self._exchange(method, self._configuration.endpoint(service) + path, body, headers)
        return status, answer

    def get(self, service: str, path: str) -> Any:
        status, answer = self.request("GET", service, path)
        assert status == http.client.OK, answer
        return answer

    def create(self, service: str, path: str, body: Any) -> Any:
        """Create an object; return it without its envelope."""
        status, answer = self.request("POST", service, path, body)
        assert status in {200, 201, 202}, answer
        (content,) = answer.values()
        return content

    @staticmethod
    def _exchange(method: str, url: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], Any]:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        try:
            content = None if body is None else json.dumps(body)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, content, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.headers.get_content_type() == "application/json" and text
            return response.status, dict(response.headers), json.loads(text) if is_json else text
        finally:
            connection.close()


def eventually(holds: Callable[[], Any], within_s: float = SETTLED_WITHIN_S) -> Any:
    """Return the first value that counts as true."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(POLL_S)
    return found
