"""What is looked after about SSH certificate authorities: what an operation left, and the project's reference."""

import pytest

from remuda.access.principal import Principal
from remuda.operations.kinds import Operation, OperationSpec, Phase
from remuda.region.authorities.routes import AUTHORITIES
from remuda.region.authorities.rules import new_authority
from remuda.region.authorities.sagas import reference_of
from remuda.region.authorities.schema import AuthorityCreate, AuthorityCreateSpec
from remuda.region.kinds.authorities import SSHCertificateAuthority, SSHCertificateAuthoritySpec
from remuda.region.kinds.servers import Server, ServerImage, ServerNetwork, ServerSpec
from remuda.resources.conventions import NAME, ORGANIZATION
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata
from tests.region.networks_asking import KEY, make_authority
from tests.region.networks_ground import ABSENT, HOME, TENANT, Ground, on_ground
from tests.region.room import ORG, PROJECT
from tests.sim.runner import START

OPERATION = "d0000000-0000-4000-8000-00000000000d"
NAME_LEFT = "d0000000-0000-4000-8000-00000000000e"


async def all_is_gone(ground: Ground) -> None:
    assert not (await ground.store.list(SSHCertificateAuthority)).items
    assert ground.identity.everything() == ({}, {}, frozenset())


def test_an_authority_reads_the_same_before_and_after_it_was_looked_at() -> None:
    async def scenario(ground: Ground) -> None:
        name = await make_authority(ground)
        client = ground.authorities.ask(TENANT)
        before = await client.get(f"{AUTHORITIES}/{name}")
        await ground.rest()
        after = await client.get(f"{AUTHORITIES}/{name}")
        assert (after.json, after.headers["etag"]) == (before.json, before.headers["etag"])
        await ground.look_again()

    on_ground(scenario, at_work=True, seeds=3)


def test_the_project_is_let_go_before_the_authority_is_gone() -> None:
    async def scenario(ground: Ground) -> None:
        name = await make_authority(ground)
        ground.identity.fail("unrefer", times=10_000)
        assert (await ground.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{name}")).status == 202
        await ground.rest()
        assert (await ground.store.get(SSHCertificateAuthority, name)).is_marked
        assert ground.identity.references[HOME] == {reference_of(name)}
        ground.identity.fail("unrefer", times=0)
        await ground.world.clock.sleep(600)
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


def test_an_authority_whose_project_goes_waits_for_the_servers_that_were_made_with_it() -> None:
    async def scenario(ground: Ground) -> None:
        name = await make_authority(ground)
        spec = ServerSpec(
            flavor_id="flavor",
            image=ServerImage(id="image"),
            networks=(ServerNetwork(id=await ground.make_network()),),
            ssh_certificate_authority_id=name,
        )
        server = await ground.store.create(Server(metadata=Metadata(name="server"), spec=spec))
        stored = await ground.store.get(SSHCertificateAuthority, name)
        await ground.store.delete(SSHCertificateAuthority, name, uid=stored.uid)  # as whoever ends the project does
        await ground.rest()
        condition = await ground.available(SSHCertificateAuthority, name)
        assert (condition.reason, condition.message) == ("InUse", "in use by servers.region.unikorn-cloud.org/server")
        assert reference_of(name) in ground.identity.references[HOME]
        await ground.store.delete(Server, server.name, uid=server.uid)
        await ground.rest()
        assert not (await ground.store.list(SSHCertificateAuthority)).items
        assert reference_of(name) not in ground.identity.references[HOME]

    on_ground(scenario, at_work=True)


def test_an_authority_of_an_existing_cluster_is_taken_into_care_and_can_go() -> None:
    async def scenario(ground: Ground) -> None:
        labels = {NAME: "old", ORGANIZATION: ORG, PROJECT_LABEL: PROJECT}
        metadata = Metadata(name=ABSENT, labels=labels)
        spec = SSHCertificateAuthoritySpec(public_key=KEY)
        await ground.store.create(SSHCertificateAuthority(metadata=metadata, spec=spec))
        await ground.rest()
        await ground.look_again()
        assert (await ground.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{ABSENT}")).status == 202
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


async def _left_by(ground: Ground, phase: Phase) -> None:
    """Store what an operation has made that stands like this."""
    record = OperationSpec(
        saga="sshcertificateauthority.create",
        subject_kind="sshcertificateauthorities.region.unikorn-cloud.org",
        subject=NAME_LEFT,
        actor="ann@example.com",
        input="{}",
        deadline=START,
        process="another",
    )
    await ground.store.create(Operation(metadata=Metadata(name=OPERATION), spec=record))
    await _turn(ground, phase)
    spec = AuthorityCreateSpec(organization_id=ORG, project_id=PROJECT, public_key=KEY)
    wanted = AuthorityCreate(metadata=MetadataWrite(name="ca"), spec=spec)
    by = Principal(subject="ann@example.com", type="user")
    await ground.identity.refer(HOME, reference_of(OPERATION))
    await ground.store.create(new_authority(NAME_LEFT, wanted, by, operation=OPERATION))


async def _turn(ground: Ground, phase: Phase) -> None:
    found = await ground.store.get(Operation, OPERATION)
    await ground.store.update_status(found.moved(phase))


def test_what_an_undone_operation_left_goes_with_the_reference_of_that_operation() -> None:
    async def scenario(ground: Ground) -> None:
        await _left_by(ground, "undoing")
        await ground.rest()
        assert not (await ground.store.get(SSHCertificateAuthority, NAME_LEFT)).is_marked
        await _turn(ground, "undone")
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


@pytest.mark.parametrize("phase", ["running", "undoing", "stuck"])
def test_what_is_deleted_while_its_operation_is_open_waits_for_its_end(phase: Phase) -> None:
    async def scenario(ground: Ground) -> None:
        await _left_by(ground, phase)
        assert (await ground.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{NAME_LEFT}")).status == 202
        await ground.rest()
        assert ground.identity.references[HOME] == {reference_of(OPERATION)}
        await _turn(ground, "done" if phase == "running" else "undone")
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)
