"""Customers who limit what there may be, and take, change and release what there is."""

from collections.abc import Hashable
from typing import Any

from remuda.identity.quotas.schema import allocation_id
from remuda.resources.conventions import ORGANIZATION, PROJECT
from tests.kit.sim_identity.customer import ORGANIZATIONS, Customer
from tests.kit.sim_identity.history import GONE, THERE, Payer, verdict_of
from tests.kit.sim_identity.snapshot import IdentitySnapshot

OWNERS = ("one", "two", "three", "four")
KINDS = ("servers", "gpus")
MOST = 4
"""Of what a limit allows, so that it is often reached."""


class Spenders(Customer):
    """Quotas and allocations."""

    async def act(self) -> None:
        """Do one thing."""
        project = self.known("project")
        if not project:
            return
        place = Payer(self.history.known["project"][project].organization, project)
        row = self.known("row", place)
        if self.chance(0.15):
            await self._limit(place)
        elif not row or self.chance(0.45):
            await (self._take(place) if self.chance(0.5) else self._take_and_confirm(place))
        else:
            await self.one_of((self._change, self._release, self._release, self._renew, self._confirm))(place, row)

    async def release_all(self, seen: IdentitySnapshot) -> None:
        """Release whatever is held in projects that are to go."""
        for row in seen.row.values():
            project = row.metadata.labels[PROJECT]
            if row.spec.state != "released" and seen.project[project].is_deleting:
                await self._release(Payer(row.metadata.labels[ORGANIZATION], project), row.name)

    async def _limit(self, place: Payer) -> None:
        limits = {kind: self._randomness.randrange(MOST + 1) for kind in self.some(KINDS, 2)}
        body = {"quotas": [{"kind": kind, "quantity": quantity} for kind, quantity in limits.items()]}
        if self.chance(0.5):
            await self.write("PUT", f"{_project(place)}/quotas", body)
            return
        key = ("limits", "organization", place.organization)
        with self.history.asking({key: frozenset(limits.items())}) as asked:
            _, asked.verdict = await self.write("PUT", f"{ORGANIZATIONS}/{place.organization}/quotas", body)

    async def _take(self, place: Payer) -> None:
        """Take something as a client does that knows nothing of confirming."""
        since, name, amounts = self.history.now(), self.history.name("row"), self._amounts()
        body = _body(name, self.one_of(OWNERS), amounts)
        reply = await self.send("POST", f"{_project(place)}/allocations", body)
        verdict = verdict_of(reply)
        if verdict == "yes":
            said = {"name": name, "amounts": _said(amounts)}
            self.history.made("row", reply.json["metadata"]["id"], place, since=since, **said)
        elif verdict == "no":
            self.history.refused.add(name)

    async def _take_and_confirm(self, place: Payer) -> None:
        """Take something under a key, as whoever has recorded its operation; and then confirm, unless it dies."""
        key, name, amounts = self._randomness.token_bytes(8).hex(), self.history.name("row"), self._amounts()
        row, body = allocation_id(self.system.root_subject, key), _body(name, self.one_of(OWNERS), amounts)
        for _ in range(2):
            since = self.history.now()
            reply = await self.send("POST", f"{_project(place)}/allocations", body, headers={"idempotency-key": key})
            if verdict_of(reply) != "unclear":
                break
        if verdict_of(reply) != "yes":
            return
        assert reply.json["metadata"]["id"] == row, "a row has the name that follows from its operation"
        self.history.made("row", row, place, since=since, name=name, amounts=_said(amounts))
        self._lapses(row)
        if self.chance(0.7):
            await self._confirm(place, row)

    async def _confirm(self, place: Payer, row: str) -> None:
        since = self.history.now()
        reply, verdict = await self.write("POST", f"{_project(place)}/allocations/{row}/confirm")
        if verdict == "yes":
            assert reply.json["status"]["state"] == "confirmed", "what was confirmed says so"
            self._stays(row, since)

    async def _change(self, place: Payer, row: str) -> None:
        path = f"{_project(place)}/allocations/{row}"
        found = await self.send("GET", path)
        if found.status != 200:
            return
        amounts, since = self._amounts(), self.history.now()
        body = _body(found.json["metadata"]["name"], found.json["spec"]["id"], amounts)
        headers = {"if-match": found.headers["etag"]} if self.chance(0.5) else {}
        with self.history.asking({("amounts", "row", row): _said(amounts)}) as asked:
            _, asked.verdict = await self.write("PUT", path, body, headers=headers)
        if asked.verdict == "yes":
            self._stays(row, since)

    async def _release(self, place: Payer, row: str) -> None:
        with self.history.asking({(THERE, "row", row): GONE}) as asked:
            _, asked.verdict = await self.write("DELETE", f"{_project(place)}/allocations/{row}")
        if asked.verdict == "unclear":  # what was begun is carried out when its time is over
            self.history.facts[THERE, "row", row].lingers(asked.requests[THERE, "row", row])

    async def _renew(self, place: Payer, row: str) -> None:
        self._lapses(row)
        with self.history.asking({(THERE, "row", row): THERE}) as asked:
            _, asked.verdict = await self.write("POST", f"{_project(place)}/allocations/{row}/renew")
        if asked.verdict == "yes" and self.chance(0.7):
            await self._confirm(place, row)

    def _lapses(self, row: str) -> None:
        """From now on it is rolled back when its time is over."""
        self.history.lapsing[row].append(
            (self.history.now(), self.history.facts[THERE, "row", row].ask(GONE, lasts=True))
        )

    def _stays(self, row: str, since: int) -> None:
        """It was confirmed by somebody who asked for that then: what was to lapse before, does not."""
        lapsing = self.history.lapsing[row]
        for each in [each for each in lapsing if each[0] < since]:
            lapsing.remove(each)
            self.history.facts[THERE, "row", row].refused(each[1])

    def _amounts(self) -> dict[str, tuple[int, int]]:
        return {kind: (self._randomness.randrange(3), self._randomness.randrange(2)) for kind in self.some(KINDS, 2)}


def _project(place: Payer) -> str:
    return f"{ORGANIZATIONS}/{place.organization}/projects/{place.project}"


def _body(name: str, owner: str, amounts: dict[str, tuple[int, int]]) -> dict[str, Any]:
    held = [{"kind": kind, "committed": one, "reserved": other} for kind, (one, other) in amounts.items()]
    return {"metadata": {"name": name}, "spec": {"kind": "instances.test", "id": owner, "allocations": held}}


def _said(amounts: dict[str, tuple[int, int]]) -> Hashable:
    parts = ((kind, part, number) for kind, both in amounts.items() for part, number in zip(_PARTS, both, strict=True))
    return frozenset(((kind, part), number) for kind, part, number in parts if number)


_PARTS = ("committed", "reserved")
