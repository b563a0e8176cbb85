"""What lending is the same for every service: which requests are lent something, and for how long a thing is lent.

Four times of five an id that was made up is replaced by a real one, and what a body names by what there is; what was
made wrong on purpose stays wrong, and a path in which all ids are from answers stays what it is. Which requests are
lent something depends on what was made up alone, not on our ids, which are others each time.

The setup has to stay, because everything lent stands on it: who asks for its end is given something else to end.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, Protocol
from urllib.parse import quote

import requests
from schemathesis import Case, HookContext, Response
from schemathesis.core.parameters import ParameterLocation

_USES = 25
"""So often a thing is lent before a fresh one takes its place."""
_REFERENCE = "things.example.org%2F{number}"
"""Encoded once more than the generator does it, as clients have to."""


class Maker(Protocol):
    """A service in which there can be more."""

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request of our own, as one who may do everything."""
        ...

    def make(self, thing: str) -> str:
        """Make something that a path can be about, and return its id."""
        ...


class Lender(ABC):
    """A hook that is called before each request, and one after it."""

    def __init__(self, maker: Maker, setup: Collection[str]) -> None:
        self._maker, self._protected = maker, frozenset(setup)
        self._standing: dict[str, tuple[str, int]] = {}
        self._real = set(setup)
        """Every id that we know to be something's."""
        self._keys = 0

    def before_call(self, _context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
        """Lend what a request needs."""
        is_wrong = case.meta.is_negative_at if case.meta is not None else lambda _: False
        if case.path_parameters and not is_wrong(ParameterLocation.PATH):
            case.path_parameters = self._path(case, dict(case.path_parameters))
        if isinstance(case.body, dict) and not is_wrong(ParameterLocation.BODY) and _is_lent(repr(case.body)):
            case.body = self.body(case, case.body)
        if not is_wrong(ParameterLocation.QUERY):
            self.query(case)
        if case.headers and not is_wrong(ParameterLocation.HEADER):
            self._headers(case)

    def after_call(self, _context: HookContext, case: Case[Any], response: Response) -> None:
        """Know what there is, and stop lending what was asked to go."""
        if response.status_code < 300 and "json" in response.headers.get("content-type", [""])[0]:
            self._real.update(_ids(response.json()))
        if case.method == "DELETE" and response.status_code < 300:
            gone = set((case.path_parameters or {}).values())
            self._standing = {kind: held for kind, held in self._standing.items() if held[0] not in gone}

    @abstractmethod
    def lent(self, case: Case[Any], name: str) -> str:
        """Return something real for a place in a path."""

    @abstractmethod
    def body(self, case: Case[Any], body: dict[str, Any]) -> dict[str, Any]:
        """Return a body that names what there is."""

    def query(self, case: Case[Any]) -> None:  # noqa: B027  most need nothing
        """Lend a query what it needs."""

    def seed(self, _case: Case[Any], made_up: dict[str, Any]) -> str:
        """Return what decides whether a path is lent something."""
        return repr(sorted(made_up.items()))

    def key_seed(self, _case: Case[Any], key: str) -> str:
        """Return what decides whether an idempotency key is made one that nobody has used."""
        return key

    def thing(self, kind: str, *, keep: bool) -> str:
        """Return a real one: one that has been lent before if it is kept, else one for this request alone."""
        name, uses = self._standing.get(kind, ("", 0))
        if not keep or not uses:
            name, uses = self._maker.make(kind), _USES
        if keep:
            self._standing[kind] = name, uses - 1
        return name

    def standing(self, kind: str) -> str:
        """Return what is lent at present, or nothing."""
        return self._standing.get(kind, ("", 0))[0]

    def forget(self, kind: str) -> None:
        """Lend another one from now on."""
        self._standing.pop(kind, None)

    def _path(self, case: Case[Any], values: dict[str, Any]) -> dict[str, Any]:
        made_up = {name: value for name, value in values.items() if value not in self._real}
        seed = self.seed(case, made_up)
        if made_up and _is_lent(seed):
            values = {name: self._value(case, name, seed) for name in values}
        itself = case.path.rpartition("{")[2].removesuffix("}")
        is_deletion = case.method == case.operation.method.upper() == "DELETE"
        if is_deletion and values.get(itself) in self._protected:
            values[itself] = self.thing(itself, keep=False)
        return values

    def _value(self, case: Case[Any], name: str, seed: str) -> str:
        return _REFERENCE.format(number=len(seed) % 3) if name == "reference" else self.lent(case, name)

    def _headers(self, case: Case[Any]) -> None:
        headers = case.headers
        if "Idempotency-Key" in headers and _is_lent(self.key_seed(case, headers["Idempotency-Key"])):
            self._keys += 1
            headers["Idempotency-Key"] = f"{headers['Idempotency-Key'][:200]}{self._keys}"
        if "If-Match" in headers and case.method in {"PUT", "PATCH", "DELETE", "POST"}:
            headers["If-Match"] = self.about(case).headers.get("etag", "*")

    def about(self, case: Case[Any]) -> requests.Response:
        """Read what a request is about: a POST ends in a verb."""
        path = case.path.rpartition("/")[0] if case.method == "POST" else case.path
        for name, value in (case.path_parameters or {}).items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        return self._maker.call("GET", path)


def _ids(told: Any) -> Iterator[str]:
    """Yield the ids in an answer: of what it is about, or of all that it lists."""
    for each in told if isinstance(told, list) else [told]:
        match each:
            case {"metadata": {"id": str(name)}}:
                yield name


def _is_lent(seed: str) -> bool:
    return hashlib.sha256(seed.encode()).digest()[0] % 5 != 0
