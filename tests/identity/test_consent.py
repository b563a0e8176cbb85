"""Memberships that a person has not agreed to: they give the person nothing, and show the organization nothing."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from remuda.identity.consent import accept, invitations
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import OrganizationUser, User, membership_id, user_id
from remuda.identity.oauth.exchange import ACCESS_TOKEN_TYPE, TOKEN_EXCHANGE
from remuda.identity.tenancy.domains import domains_of, prove, release
from remuda.identity.users.memberships import restore
from remuda.identity.users.rules import locked_by
from remuda.operations.kinds import Operation
from remuda.resources.crud import retry_on_conflict
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.launch import run_identity
from tests.kit.sim_identity.history import claims_of

ANN, VICTIM = "ann@evil.test", "victim@gmail.test"


class Scene:
    """An organization whose administrator, Ann, the platform administrator has appointed."""

    def __init__(self, identity: IdentityEnvironment) -> None:
        self.identity = identity
        self.home = self.administrators = self.ann = ""

    async def furnish(self, name: str = "evil") -> "Scene":
        identity = self.identity
        self.home = await identity.organization(name)
        self.administrators = await identity.group(self.home, "administrator")
        await identity.user(ANN, self.home, self.administrators)
        self.ann = await identity.log_in(ANN)
        return self

    @property
    def path(self) -> str:
        return f"{ORGANIZATIONS}/{self.home}"

    async def add(self, subject: str, state: str = "active", *, token: str = "") -> Any:
        """Add somebody to the administrators, as Ann or as whoever has this token."""
        spec = {"subject": subject, "state": state, "groupIDs": [self.administrators]}
        client = self.identity.client(token or self.ann)
        return expect(await client.post(f"{self.path}/users", {"spec": spec}), 201)

    async def shown(self, subject: str) -> Any:
        """Return what Ann is shown of somebody."""
        listed = expect(await self.identity.client(self.ann).get(f"{self.path}/users"), 200)
        return next(each for each in listed if each["spec"]["subject"] == subject)

    async def audited(self, subject: str) -> list[Any]:
        """Return what the organization's audit log has of somebody."""
        reply = await self.identity.client(self.ann).get(f"{self.path}/audit", [("actor", subject)])
        return list(expect(reply, 200))

    async def claim(self, domain: str) -> Organization:
        store = self.identity.store

        async def write() -> Organization:
            found = await store.get(Organization, self.home)
            return await store.update(replace(found, spec=replace(found.spec, domain=domain)))

        return await retry_on_conflict(write)

    async def prove(self, domain: str) -> None:
        claiming = await self.claim(domain)
        assert await prove(self.identity.store, claiming, domain, "dns", now=self.identity.clock.now())

    async def disprove(self) -> None:
        found = await self.identity.store.get(Organization, self.home)
        for each in await domains_of(self.identity.store, found):
            await release(self.identity.store, each)

    async def is_member(self, subject: str) -> bool:
        """Tell whether somebody belongs to the organization by everything that says so, which must agree."""
        identity, token = self.identity, await self.identity.log_in(subject)
        client = identity.client(token)
        userinfo = expect(await client.get("/oauth2/v2/userinfo"), 200)["https://unikorn-cloud.org/authz"]["orgIds"]
        access = {each["id"] for each in expect(await client.get("/api/v1/acl"), 200).get("organizations", [])}
        listed = {each["metadata"]["id"] for each in expect(await client.get(ORGANIZATIONS), 200)}
        read = (await client.get(self.path)).status
        passport, scoped = await self._passport(token), await self._passport(token, x_organization_id=self.home)
        org_ids = claims_of(passport.json["access_token"])["org_ids"]
        acting = identity.service("unikorn-compute", impersonates=True, actor=subject, type="user")
        impersonated = expect(await acting.get("/api/v1/acl"), 200).get("organizations", [])
        said: list[bool] = [
            self.home in userinfo,
            self.home in access,
            self.home in listed,
            read == 200,
            self.home in org_ids,
            scoped.status == 200,
            self.home in {each["id"] for each in impersonated},
        ]
        assert len(set(said)) == 1, said
        return said[0]

    async def _passport(self, token: str, **scope: str) -> Any:
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "subject_token": token,
            "subject_token_type": ACCESS_TOKEN_TYPE,
            **scope,
        }
        return await self.identity.client().post("/oauth2/v2/token", form=form)


async def test_m27_who_is_entered_without_being_asked_gets_nothing_and_is_not_shown(
    identity: IdentityEnvironment,
) -> None:
    scene = await Scene(identity).furnish()
    await identity.log_in(VICTIM)
    answer = await scene.add(VICTIM)
    assert answer["spec"] == {"subject": VICTIM, "state": "active", "groupIDs": [scene.administrators]}
    assert not await scene.is_member(VICTIM)
    assert (await scene.shown(VICTIM))["status"] == {}
    changed = {"spec": {"subject": VICTIM, "state": "active", "groupIDs": [scene.administrators]}}
    path = f"{scene.path}/users/{answer['metadata']['id']}"
    assert expect(await identity.client(scene.ann).put(path, changed), 200)["status"] == {}
    await scene.add(VICTIM)
    assert not await scene.is_member(VICTIM), "who writes it again has not asked either"
    assert await scene.audited(VICTIM) == []


async def test_m27_who_accepts_is_a_member_and_shown(identity: IdentityEnvironment) -> None:
    scene = await Scene(identity).furnish()
    member = (await scene.add(VICTIM))["metadata"]["id"]
    (invited,) = await invitations(identity.store, await identity.store.get(User, user_id(VICTIM)))
    assert invited.name == member
    await accept(identity.store, member)
    assert await scene.is_member(VICTIM)
    assert "lastActive" in (await scene.shown(VICTIM))["status"]
    assert not await invitations(identity.store, await identity.store.get(User, user_id(VICTIM)))
    await scene.add(VICTIM, state="suspended")
    assert await scene.is_member(VICTIM), "a membership that was accepted stays so"


async def test_who_was_removed_and_is_entered_again_is_asked_again(identity: IdentityEnvironment) -> None:
    scene = await Scene(identity).furnish()
    member = (await scene.add(VICTIM))["metadata"]["id"]
    await accept(identity.store, member)
    assert (await identity.client(scene.ann).delete(f"{scene.path}/users/{member}")).status == 200
    await scene.add(VICTIM)
    assert not await scene.is_member(VICTIM)


async def test_an_organization_speaks_for_the_addresses_of_a_domain_that_it_has_proven(
    identity: IdentityEnvironment,
) -> None:
    scene = await Scene(identity).furnish()
    await scene.add(VICTIM)
    await scene.claim("gmail.test")
    assert not await scene.is_member(VICTIM), "a claim is not a proof"
    await scene.prove("gmail.test")
    assert await scene.is_member(VICTIM)
    assert "lastActive" in (await scene.shown(VICTIM))["status"]
    assert not await invitations(identity.store, await identity.store.get(User, user_id(VICTIM)))
    await scene.claim("other.test")
    assert not await scene.is_member(VICTIM), "it ends with the claim"
    await _settle(identity)
    await scene.claim("gmail.test")
    assert not await scene.is_member(VICTIM)
    await scene.prove("gmail.test")
    assert await scene.is_member(VICTIM)
    await scene.disprove()
    assert not await scene.is_member(VICTIM), "it ends with the proof"


async def test_an_address_below_a_proven_domain_or_of_another_organization_is_not_spoken_for(
    identity: IdentityEnvironment,
) -> None:
    scene, other = await Scene(identity).furnish(), await Scene(identity).furnish("other")
    await scene.prove("gmail.test")
    for subject in ("victim@mail.gmail.test", "victim@xgmail.test"):
        await scene.add(subject)
        assert not await scene.is_member(subject)
    await other.add(VICTIM)
    assert not await other.is_member(VICTIM)


@pytest.mark.parametrize("method", ["post", "put"])
async def test_a_platform_administrator_speaks_for_everybody(identity: IdentityEnvironment, method: str) -> None:
    scene = await Scene(identity).furnish()
    if method == "post":
        await scene.add(VICTIM, token=identity.root)
    else:
        member = (await scene.add(VICTIM))["metadata"]["id"]
        body = {"spec": {"subject": VICTIM, "state": "active", "groupIDs": [scene.administrators]}}
        expect(await identity.client(identity.root).put(f"{scene.path}/users/{member}", body), 200)
    assert await scene.is_member(VICTIM)


async def test_a_service_account_of_an_organization_speaks_for_nobody(identity: IdentityEnvironment) -> None:
    scene = await Scene(identity).furnish()
    account = await identity.account(scene.home, scene.administrators)
    await scene.add(VICTIM, token=account.token)
    assert not await scene.is_member(VICTIM)


async def test_invitations_of_others_do_not_take_the_place_of_audit_copies(identity: IdentityEnvironment) -> None:
    scene = await Scene(identity).furnish()
    await scene.add(VICTIM, token=identity.root)
    found = await identity.store.get(OrganizationUser, membership_id(scene.home, user_id(VICTIM)))
    for number in range(30):
        spammer = await Scene(identity).furnish(f"spam-{number}")
        await spammer.add(VICTIM)
    assert not found.spec.invited
    token = await identity.log_in(VICTIM)
    form = {"token": token}
    expect(await identity.carrying({"Authorization": f"Bearer {token}"}).post("/oauth2/v2/revoke", form=form), 200)
    (record,) = await scene.audited(VICTIM)
    assert record["operation"]["route"] == "/oauth2/v2/revoke"
    assert await spammer.audited(VICTIM) == []


STEPS = ("add", "add by root", "remove", "accept", "prove", "disprove", "claim another", "update", "update by root")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.sampled_from(STEPS), max_size=10))
def test_m27_whatever_happens_a_membership_counts_only_by_consent_proof_or_a_platform_administrators_word(
    steps: list[str],
) -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        scene = await Scene(identity).furnish()
        member = membership_id(scene.home, user_id(VICTIM))
        is_there = has_agreed = is_proven = is_claimed = False
        body = {"spec": {"subject": VICTIM, "state": "active", "groupIDs": [scene.administrators]}}
        for step in steps:
            by_root = step.endswith("by root")
            client = identity.client(identity.root if by_root else scene.ann)
            match step.removesuffix(" by root"):
                case "add":
                    await scene.add(VICTIM, token=identity.root if by_root else "")
                    has_agreed = by_root or (is_there and has_agreed)
                    is_there = True
                case "update":
                    reply = await client.put(f"{scene.path}/users/{member}", body)
                    assert reply.status == (200 if is_there else 404)
                    has_agreed = has_agreed or (by_root and is_there)
                case "remove":
                    await client.delete(f"{scene.path}/users/{member}")
                    is_there = has_agreed = False
                case "accept":
                    await accept(identity.store, member)
                    has_agreed = is_there
                case "prove":
                    await scene.prove("gmail.test")
                    is_proven = is_claimed = True
                case "disprove":
                    await scene.disprove()
                    is_proven = False
                case "claim another":
                    await scene.claim("other.test")
                    is_claimed = False
            await _settle(identity)
            is_proven = is_proven and is_claimed  # its controller releases what is not claimed
            assert await scene.is_member(VICTIM) == (is_there and (has_agreed or is_proven)), step

    run_identity(scenario)


async def _settle(identity: IdentityEnvironment) -> None:
    """Wait until no operation is open and the controllers have followed."""

    async def is_settled() -> bool:
        return not [each for each in (await identity.store.list(Operation)).items if each.is_open]

    await identity.eventually("no operation is open", is_settled)
    await identity.clock.sleep(5)


async def test_consent_outlives_the_rollback_of_an_operation(identity: IdentityEnvironment) -> None:
    scene = await Scene(identity).furnish()
    member = (await scene.add(VICTIM))["metadata"]["id"]
    for is_accepted in (False, True):
        found = await identity.store.get(OrganizationUser, member)
        await identity.store.update(locked_by(found, "operation"))
        if is_accepted:
            await accept(identity.store, member)
        await restore(identity.store, OrganizationUser, member, "operation")
        restored = await identity.store.get(OrganizationUser, member)
        assert (restored.spec.lock, restored.spec.invited) == (None, not is_accepted)
