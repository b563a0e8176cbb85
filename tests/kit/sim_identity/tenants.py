"""Customers who make, change and remove organizations, projects, providers and references."""

from typing import Any
from urllib.parse import quote

from remuda.resources.conventions import ORGANIZATION
from tests.kit.sim_identity.customer import ORGANIZATIONS, Customer
from tests.kit.sim_identity.history import GONE, THERE, Payer
from tests.kit.sim_identity.snapshot import IdentitySnapshot

DOMAINS = ("acme.test", "apex.test")
REFERENCES = ("networks.region.test/one", "instances.compute.test/two")
MAX_ORGANIZATIONS, MAX_PROJECTS = 3, 4


class Tenants(Customer):
    """Organizations and what is in them but for users."""

    async def act(self) -> None:
        """Do one thing."""
        organization = self.known("organization")
        living = [
            each for each in self.history.known["organization"] if not self.history.may_be_gone("organization", each)
        ]
        if not living or (len(living) < MAX_ORGANIZATIONS and self.chance(0.2)):
            await self._make_organization()
        elif self.chance(0.05):
            await self._remove("organization", organization, f"{ORGANIZATIONS}/{organization}")
        elif self.chance(0.15):
            await self._change_organization(organization)
        elif self.chance(0.2):
            await self._provide(organization)
        else:
            await self._project(organization)

    async def release_all(self, seen: IdentitySnapshot) -> None:
        """Need no project any more that is to go."""
        for project in seen.project.values():
            home = f"{ORGANIZATIONS}/{project.metadata.labels[ORGANIZATION]}/projects/{project.name}"
            for reference in set(REFERENCES) & set(project.metadata.finalizers) if project.is_deleting else ():
                await self.send("DELETE", f"{home}/references/{_twice_quoted(reference)}")

    async def claim_domain(self, organization: str) -> None:
        """Let an organization claim a domain, for which it needs a provider."""
        if not self.known("provider", Payer(organization)):
            await self._provide(organization)
        await self._change_organization(organization, claims=1.0)

    async def _make_organization(self) -> None:
        since, name = self.history.now(), self.history.name("organization")
        body = {"metadata": {"name": name}, "spec": {"organizationType": "adhoc"}}
        reply, verdict = await self.write("POST", ORGANIZATIONS, body)
        if verdict == "yes":
            self.history.made("organization", reply.json["metadata"]["id"], Payer(), since=since, name=name)
        elif verdict == "no":
            self.history.refused.add(name)

    async def _change_organization(self, organization: str, *, claims: float = 0.5) -> None:
        path, name = f"{ORGANIZATIONS}/{organization}", self.history.name("organization")
        body = {"metadata": {"name": name}, "spec": self._logins(organization, claims)}
        headers = await self.tagged(path)
        with self.history.asking({("name", "organization", organization): name}) as asked:
            _, asked.verdict = await self.write("PUT", path, body, headers=headers)

    def _logins(self, organization: str, claims: float) -> dict[str, Any]:
        provider = self.known("provider", Payer(organization))
        if not provider or not self.chance(claims):
            return {"organizationType": "adhoc"}
        return {
            "organizationType": "domain",
            "domain": self.one_of(DOMAINS),
            "providerScope": "organization",
            "providerID": provider,
        }

    async def _provide(self, organization: str) -> None:
        home, provider = f"{ORGANIZATIONS}/{organization}/oauth2providers", self.known("provider", Payer(organization))
        name = self.history.name("provider")
        body = {"metadata": {"name": name}, "spec": {"issuer": "https://login.test", "clientID": "us"}}
        if not provider or self.chance(0.4):
            since = self.history.now()
            reply, verdict = await self.write("POST", home, body)
            if verdict == "yes":
                id_ = reply.json["metadata"]["id"]
                self.history.made("provider", id_, Payer(organization), since=since, name=name)
            elif verdict == "no":
                self.history.refused.add(name)
        elif self.chance(0.5):
            with self.history.asking({("name", "provider", provider): name}) as asked:
                _, asked.verdict = await self.write("PUT", f"{home}/{provider}", body)
        else:
            await self._remove("provider", provider, f"{home}/{provider}")

    async def _project(self, organization: str) -> None:
        home = f"{ORGANIZATIONS}/{organization}/projects"
        there = [each for each, place in self.history.known["project"].items() if place.organization == organization]
        project = self.one_of(there) if there else ""
        if not project or (len(there) < MAX_PROJECTS and self.chance(0.3)):
            await self._make_project(home, organization)
        elif self.chance(0.4):
            await self._refer(f"{home}/{project}/references")
        elif self.chance(0.5):
            with self.history.asking({("name", "project", project): (name := self.history.name("project"))}) as asked:
                headers = await self.tagged(f"{home}/{project}")
                body = self._project_body(organization, name)
                _, asked.verdict = await self.write("PUT", f"{home}/{project}", body, headers=headers)
        else:
            await self._remove("project", project, f"{home}/{project}")

    async def _make_project(self, home: str, organization: str) -> None:
        since, name = self.history.now(), self.history.name("project")
        reply, verdict = await self.write("POST", home, self._project_body(organization, name))
        if verdict == "yes":
            id_ = reply.json["metadata"]["id"]
            self.history.made("project", id_, Payer(organization), since=since, name=name)
        elif verdict == "no":
            self.history.refused.add(name)

    def _project_body(self, organization: str, name: str) -> dict[str, Any]:
        groups = [each for each, place in self.history.known["group"].items() if place.organization == organization]
        return {"metadata": {"name": name}, "spec": {"groupIDs": self.some(groups, 2)}}

    async def _refer(self, home: str) -> None:
        await self.send(self.one_of(("PUT", "DELETE")), f"{home}/{_twice_quoted(self.one_of(REFERENCES))}")

    async def _remove(self, kind: str, id_: str, path: str) -> None:
        headers = await self.tagged(path) if kind != "provider" else {}
        with self.history.asking({(THERE, kind, id_): GONE}) as asked:
            _, asked.verdict = await self.write("DELETE", path, headers=headers)


def _twice_quoted(reference: str) -> str:
    return quote(quote(reference, safe=""), safe="")
