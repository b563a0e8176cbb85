"""Customers of identity: what all of them do, whatever they are after."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from remuda.identity.app import TABLE
from tests.kit.asgi.client import Form
from tests.kit.asgi.contract import Reply
from tests.kit.sim_identity.expectations import Expecting
from tests.kit.sim_identity.history import Payer, Verdict, verdict_of

T = TypeVar("T")

ORGANIZATIONS = "/api/v1/organizations"
UNAVAILABLE = 503
_PARAMETER = re.compile(r"\{[^}]*\}")
OPERATIONS = [
    (route.method, re.compile(_PARAMETER.sub("[^/]+", route.path)), route.name)
    for route in sorted(TABLE.routes, key=lambda route: route.path.count("{"))
]
"""Every operation of identity: its method, its path and its name."""


class Customer:
    """Does something at random."""

    def __init__(self, system: Expecting) -> None:
        self.system, self.history = system, system.history
        self._randomness = system.machine.randomness

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        form: Form | None = None,
        query: Any = (),
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request to one of the processes, as root unless there is a token; with an empty one, as nobody."""
        client = self.system.client(await self.system.root() if token is None else token or None)
        return self.noted(
            method, path, await client.send(method, path, body=body, form=form, query=query, headers=headers)
        )

    def noted(self, method: str, path: str, reply: Reply) -> Reply:
        """Count an answer."""
        self.history.outcomes[f"{method} {reply.status}"] += 1
        assert reply.status < 500 or reply.status == UNAVAILABLE, f"{method} {path} answered {reply.body!r}"
        if reply.status < 400:
            self.history.operations.add(_operation(method, path))
        return reply

    async def write(
        self, method: str, path: str, body: Any = None, *, subject: str = "", headers: Mapping[str, str] | None = None
    ) -> tuple[Reply, Verdict]:
        """Ask for a change, perhaps under a key, and then once more if nobody knows what became of it.

        `subject` is what the operation is about, if it is one: while that is being undone, a rejection is not yet true.
        """
        sent, is_unclear = dict(headers or {}), False
        if method == "POST" and self.chance(0.5):
            sent["idempotency-key"] = self._randomness.token_bytes(8).hex()
        reply = await self.send(method, path, body, headers=sent)
        if reply.status == UNAVAILABLE and "idempotency-key" in sent:
            is_unclear = True
            reply = await self.send(method, path, body, headers=sent)
        verdict = verdict_of(reply)
        if verdict == "no" and (is_unclear or (subject and self.system.is_undoing(subject))):
            return reply, "unclear"
        return reply, verdict

    async def tagged(self, path: str) -> Mapping[str, str]:
        """Return the header for a change of what was just read, or for any change."""
        if self.chance(0.5):
            reply = await self.send("GET", path)
            if "etag" in reply.headers:
                return {"if-match": reply.headers["etag"]}
        return {}

    def known(self, kind: str, place: Payer | None = None) -> str:
        """Return the id of something that customers have heard of, in a place or anywhere; none is empty."""
        found = [each for each, where in self.history.known[kind].items() if place is None or where == place]
        return self.one_of(found) if found else ""

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Return some of several, each once."""
        left, wanted = list(choices), min(len(choices), self._randomness.randrange(most + 1))
        return [left.pop(self._randomness.randrange(len(left))) for _ in range(wanted)]

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return choices[self._randomness.randrange(len(choices))]

    def chance(self, share: float) -> bool:
        """Tell whether something happens that does so often."""
        return self._randomness.uniform(0, 1) < share


def _operation(method: str, path: str) -> str:
    return next(name for verb, pattern, name in OPERATIONS if verb == method and pattern.fullmatch(path))
