"""A check of our own, in the place of `use_after_free`: deletion takes its time here, and says so."""

from typing import Any, Protocol

import requests
from schemathesis import Case, CheckContext, Response


class Called(Protocol):
    """What can be asked something by us."""

    def call(self, method: str, path: str) -> requests.Response:
        """Send a request of our own, as one who may do everything."""
        ...


class DeletionCheck:
    """After a DELETE that was answered 202, a read shows the deletion time, or there is nothing to read.

    What cannot be read by itself (405) is not looked at.
    """

    __name__ = "deletion_shows"

    def __init__(self, target: Called) -> None:
        self._target = target
        self.seen = 0

    def __call__(self, _context: CheckContext, response: Response, case: Case[Any]) -> None:
        """Read what was just asked to go."""
        if case.method != "DELETE" or response.status_code != 202:
            return
        path = response.request.path_url.partition("?")[0]  # a read takes other parameters
        read = self._target.call("GET", path)
        if read.status_code == 405:
            return
        self.seen += 1
        assert read.status_code in {200, 404}, f"after a DELETE that was accepted, GET {path} is {read.status_code}"
        if read.status_code == 200:
            told = read.json()["metadata"].get("deletionTime")
            assert told, f"after a DELETE that was accepted, GET {path} shows no deletion time"
