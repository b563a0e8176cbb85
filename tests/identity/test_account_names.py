"""The name of a service account comes with its authentication, and no name can break a terminal or a page."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal, requester_of
from remuda.clients.delegation import Delegation
from remuda.http.authentication import (
    PrincipalClaim,
    acting_for,
    claim_of,
    presented_by,
    read_claim_of_bearer,
    write_claim,
)
from remuda.identity.kinds.users import ServiceAccount
from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import Invalid
from remuda.kernel.names import display_name
from remuda.kernel.randomness import SystemRandomness
from remuda.resources.conventions import NAME
from tests.kit.identity.authenticator import AuthenticatorEnvironment
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.remote_authenticator import apart

SERVICE = Principal(subject="unikorn-compute", type="system")
ROBOT = Principal(subject="d0000000-0000-4000-8000-000000000001", type="service", display_name="scripts")
HOSTILE = ["<b>x</b>", "\x1b[2J", "a\nb", "scripts\n", "a" * 64, "näme", "a b", "-a", '"', "a\x00"]


async def _rename(environment: AuthenticatorEnvironment, account: ServiceAccount, name: str) -> None:
    found = await environment.store.get(ServiceAccount, account.name)
    labels = {**found.metadata.labels, NAME: name}
    await environment.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))


async def test_an_account_has_its_present_name_and_a_person_none(authentication: AuthenticatorEnvironment) -> None:
    acme = await authentication.organization()
    robot = await authentication.account(acme)
    token = await authentication.new_token(robot)
    await _rename(authentication, robot, "scripts")
    assert (await authentication.let_in(token)).display_name == "scripts"
    await _rename(authentication, robot, "deployment")
    known = await authentication.let_in(token)
    assert (known.display_name, known.subject) == ("deployment", robot.name)
    assert await authentication.let_in(token) is known, "the name needs no read of its own"
    token, _ = await authentication.log_in(await authentication.user("ann@example.com", acme))
    assert (await authentication.let_in(token)).display_name == ""


async def test_another_process_learns_the_name_from_identity(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        robot = await there.environment.account(await there.environment.organization())
        token = await there.environment.new_token(robot)
        await _rename(there.environment, robot, "scripts")
        assert (await there.let_in(token)).display_name == "scripts"
        assert there.asked == {"jwks": 1, "acl": 1}, "without a request of its own"


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_hostile_name_is_no_name(authentication: AuthenticatorEnvironment, hostile: str) -> None:
    assert display_name(hostile) == ""
    claimed = PrincipalClaim(actor=ROBOT.subject, actor_name=hostile)
    assert acting_for(SERVICE, claimed).display_name == ""
    assert presented_by(replace(ROBOT, subject="other"), SERVICE, claimed).display_name == ""
    robot = await authentication.account(await authentication.organization())
    with pytest.raises(Invalid, match="has an invalid value"):
        await _rename(authentication, robot, hostile)


async def test_the_name_travels_with_the_principal() -> None:
    async def service() -> Principal:
        return SERVICE

    claim = read_claim_of_bearer(write_claim(claim_of(ROBOT)).encode())
    assert acting_for(SERVICE, claim).display_name == "scripts"
    assert presented_by(ROBOT, SERVICE, PrincipalClaim(actor=ROBOT.subject)).display_name == "scripts"
    assert presented_by(ROBOT, SERVICE, PrincipalClaim(actor="ann@example.com")).display_name == ""
    further = await Delegation(service=service, randomness=SystemRandomness()).as_service(actor="ann@example.com")
    assert further.principal.display_name == ""


def test_a_claim_of_the_reference_has_no_name_and_may_have_unknown_fields() -> None:
    claim = read_claim_of_bearer(to_base64url(b'{"actor":"ann@example.com","type":"user","later":{"a":1}}').encode())
    assert (claim.actor, claim.actor_name) == ("ann@example.com", "")


def test_the_input_of_an_operation_does_not_change_with_the_name() -> None:
    """A repeated request is recognized by an equal input, also after the account was renamed."""
    assert requester_of(ROBOT) == requester_of(replace(ROBOT, display_name="deployment"))
    assert requester_of(ROBOT).named("scripts") == ROBOT


async def test_the_audit_log_names_an_account_and_not_that_of_a_stranger(identity: IdentityEnvironment) -> None:
    acme, other = await identity.organization("acme"), await identity.organization("other")
    robot = await identity.account(acme, await identity.group(acme, "administrator", name="own"), name="scripts")
    stranger = await identity.account(other, await identity.group(other, "administrator", name="theirs"), name="chosen")
    group = await identity.group(acme, name="victim")
    path = f"{ORGANIZATIONS}/{acme}/groups/{group}"
    assert (await identity.client(stranger.token).delete(path)).status >= 400
    assert (await identity.client(robot.token).delete(path)).status == 200
    records = expect(await identity.client(identity.root).get(f"{ORGANIZATIONS}/{acme}/audit"), 200)
    actors = [each["actor"] for each in records]
    assert {"subject": robot.id, "name": "scripts"} in actors
    assert {"subject": stranger.id} in actors, "the name is a text that the stranger chose"
    own = expect(await identity.client(identity.root).get(f"{ORGANIZATIONS}/{acme}/audit", {"actor": "scripts"}), 200)
    assert {each["actor"]["subject"] for each in own} == {robot.id}
