"""Customers who make, change and remove users, service accounts and groups, and rotate tokens."""

from typing import Any

from remuda.identity.kinds.users import membership_id, user_id
from remuda.identity.rbac.roles import role_id
from tests.kit.sim_identity.customer import ORGANIZATIONS, Customer
from tests.kit.sim_identity.history import GONE, THERE, Payer, Requests, Token, claims_of

SUBJECTS = ("ann@acme.test", "Bob@acme.test", "cy@apex.test")
STATES = ("active", "pending", "suspended")
ROLES = ("administrator", "user", "reader")
MAX_GROUPS, MAX_ACCOUNTS = 3, 3


class Members(Customer):
    """Who is in an organization, and in which groups."""

    async def act(self) -> None:
        """Do one thing."""
        if organization := self.known("organization"):
            await self.one_of((self._group, self._user, self._user, self._account, self._account))(organization)

    async def _group(self, organization: str) -> None:
        home, groups = f"{ORGANIZATIONS}/{organization}/groups", self._there("group", organization)
        group = self.one_of(groups) if groups else ""
        if not group or (len(groups) < MAX_GROUPS and self.chance(0.5)):
            await self._make_group(home, organization)
        elif self.chance(0.75):
            await self._change_group(f"{home}/{group}", organization, group)
        else:
            headers = await self.tagged(f"{home}/{group}")
            with self.history.asking({(THERE, "group", group): GONE}) as asked:
                _, asked.verdict = await self.write("DELETE", f"{home}/{group}", headers=headers)

    async def _make_group(self, home: str, organization: str) -> None:
        since, name = self.history.now(), self.history.name("group")
        reply, verdict = await self.write("POST", home, self._group_body(organization, name))
        if verdict == "yes":
            self.history.made("group", reply.json["metadata"]["id"], Payer(organization), since=since, name=name)
        elif verdict == "no":
            self.history.refused.add(name)

    async def _change_group(self, path: str, organization: str, group: str) -> None:
        name = self.history.name("group")
        body, headers = self._group_body(organization, name), await self.tagged(path)
        users, accounts = self._there("user", organization), self._there("account", organization)
        places = {("user", group, each): each in body["spec"]["userIDs"] for each in users}
        places |= {("account", group, each): each in body["spec"]["serviceAccountIDs"] for each in accounts}
        with (
            self.history.placing(places, group, *users, *accounts) as asked,
            self.history.asking({("name", "group", group): name}) as named,
        ):
            _, asked.verdict = await self.write("PUT", path, body, headers=headers)
            named.verdict = asked.verdict

    def _group_body(self, organization: str, name: str) -> dict[str, Any]:
        spec = {
            "roleIDs": [role_id(each) for each in self.some(ROLES, 2)],
            "userIDs": self.some(self._there("user", organization), 2),
            "serviceAccountIDs": self.some(self._there("account", organization), 2),
        }
        return {"metadata": {"name": name}, "spec": spec}

    async def _user(self, organization: str) -> None:
        home, subject = f"{ORGANIZATIONS}/{organization}/users", self.one_of(SUBJECTS)
        user = membership_id(organization, user_id(subject))
        if self.chance(0.25):
            with self.history.asking({(THERE, "user", user): GONE}) as asked:
                _, asked.verdict = await self.write("DELETE", f"{home}/{user}")
            return
        method, path = ("POST", home) if self.chance(0.5) else ("PUT", f"{home}/{user}")
        groups, state = self._there("group", organization), self.one_of(STATES)
        wanted = self.some(groups, 2)
        body = {"spec": {"subject": subject, "state": state, "groupIDs": wanted}}
        known = self.history.facts["state", "user", user]
        stated = known.ask(state)
        places = {("user", each, user): each in wanted for each in groups}
        there: Requests = {(THERE, "user", user): THERE} if method == "POST" else {}
        with self.history.placing(places, user, *groups) as asked, self.history.asking(there) as making:
            reply, asked.verdict = await self.write(method, path, body, subject=user)
            making.verdict = asked.verdict
        if asked.verdict == "unclear" and method == "PUT":
            self.history.bundles.append({**asked.requests, ("state", "user", user): stated})
        if asked.verdict == "no":
            known.refused(stated)
        elif asked.verdict == "yes" and method == "PUT":
            known.granted(stated)
        elif asked.verdict == "yes":
            known.unclear(stated)  # one that was there kept its state
        if method == "POST" and asked.verdict != "no":
            self.history.subjects.add(subject.lower())
            self.history.known["user"].setdefault(user, Payer(organization))
        if asked.verdict == "yes":
            assert reply.json["metadata"]["id"] == user, "a user has the id that follows from its subject"

    async def _account(self, organization: str) -> None:
        home, accounts = f"{ORGANIZATIONS}/{organization}/serviceaccounts", self._there("account", organization)
        account = self.one_of(accounts) if accounts else ""
        if not account or (len(accounts) < MAX_ACCOUNTS and self.chance(0.3)):
            await self._make_account(home, organization)
        elif self.chance(0.4):
            await self._rotate(f"{home}/{account}/rotate", account)
        elif self.chance(0.6):
            await self._change_account(f"{home}/{account}", organization, account)
        else:
            with self.history.asking({(THERE, "account", account): GONE}) as asked:
                _, asked.verdict = await self.write("DELETE", f"{home}/{account}")

    async def _make_account(self, home: str, organization: str) -> None:
        since, name = self.history.now(), self.history.name("account")
        groups = self._there("group", organization)
        wanted = self.some(groups, 2)
        body = {"metadata": {"name": name}, "spec": {"groupIDs": wanted}}
        reply, verdict = await self.write("POST", home, body)
        if verdict == "yes":
            account, token = reply.json["metadata"]["id"], reply.json["status"]["accessToken"]
            self.history.made("account", account, Payer(organization), since=since, name=name, token=token)
            self._given(account, token)
        elif verdict == "no":
            self.history.refused.add(name)

    async def _change_account(self, path: str, organization: str, account: str) -> None:
        groups, name = self._there("group", organization), self.history.name("account")
        wanted = self.some(groups, 2)
        body = {"metadata": {"name": name}, "spec": {"groupIDs": wanted}}
        places = {("account", each, account): each in wanted for each in groups}
        with (
            self.history.placing(places, account, *groups) as asked,
            self.history.asking({("name", "account", account): name}) as named,
        ):
            _, asked.verdict = await self.write("PUT", path, body, subject=account)
            named.verdict = asked.verdict
        if asked.verdict == "unclear":
            self.history.bundles.append({**asked.requests, **named.requests})

    async def _rotate(self, path: str, account: str) -> None:
        with self.history.asking({("token", "account", account): f"rotation {self.history.now()}"}) as asked:
            reply, asked.verdict = await self.write("POST", path)
            if asked.verdict == "yes":
                asked.reveal(reply.json["status"]["accessToken"])
                self._given(account, reply.json["status"]["accessToken"])

    def _given(self, account: str, token: str) -> None:
        self.history.tokens.append(Token(token, claims_of(token), account=account))
        self.history.secrets.add(token)

    def _there(self, kind: str, organization: str) -> list[str]:
        """Return what customers know of in an organization and have not asked to go."""
        return [
            each
            for each, place in self.history.known[kind].items()
            if place.organization == organization and GONE not in self.history.facts[THERE, kind, each].possible
        ]
