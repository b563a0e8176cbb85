"""What is reconciled about SSH certificate authorities: what an operation left, and the project's reference."""

import pytest

from remuda.access.principal import Principal
from remuda.operations.kinds import Operation, OperationSpec, Phase
from remuda.region.authorities.routes import AUTHORITIES
from remuda.region.authorities.rules import new_authority, reference_of
from remuda.region.authorities.schema import AuthorityCreate, AuthorityCreateSpec
from remuda.region.kinds.authorities import SSHCertificateAuthority, SSHCertificateAuthoritySpec
from remuda.region.kinds.servers import Server, ServerImage, ServerNetwork, ServerSpec
from remuda.resources.conventions import NAME, ORGANIZATION
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.network_requests import KEY, make_authority
from tests.kit.region.networks import ABSENT, HOME, TENANT, NetworksEnvironment
from tests.kit.region.resource_api import ORG, PROJECT
from tests.kit.simulation.runner import START

OPERATION = "d0000000-0000-4000-8000-00000000000d"
NAME_LEFT = "d0000000-0000-4000-8000-00000000000e"


async def all_is_gone(region_networks: NetworksEnvironment) -> None:
    assert not (await region_networks.store.list(SSHCertificateAuthority)).items
    assert region_networks.identity.everything() == ({}, {}, frozenset())


@options(at_work=True, seeds=3)
async def test_an_authority_reads_the_same_before_and_after_it_was_looked_at(
    region_networks: NetworksEnvironment,
) -> None:
    name = await make_authority(region_networks)
    client = region_networks.authorities.ask(TENANT)
    before = await client.get(f"{AUTHORITIES}/{name}")
    await region_networks.rest()
    after = await client.get(f"{AUTHORITIES}/{name}")
    assert (after.json, after.headers["etag"]) == (before.json, before.headers["etag"])
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_the_project_is_released_before_the_authority_is_gone(region_networks: NetworksEnvironment) -> None:
    name = await make_authority(region_networks)
    region_networks.identity.fail("remove_reference", times=10_000)
    assert (await region_networks.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{name}")).status == 202
    await region_networks.rest()
    assert (await region_networks.store.get(SSHCertificateAuthority, name)).is_deleting
    assert region_networks.identity.references[HOME] == {reference_of(name)}
    region_networks.identity.fail("remove_reference", times=0)
    await region_networks.world.clock.sleep(600)
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_an_authority_whose_project_goes_waits_for_the_servers_that_were_made_with_it(
    region_networks: NetworksEnvironment,
) -> None:
    name = await make_authority(region_networks)
    spec = ServerSpec(
        flavor_id="flavor",
        image=ServerImage(id="image"),
        networks=(ServerNetwork(id=await region_networks.make_network()),),
        ssh_certificate_authority_id=name,
    )
    server = await region_networks.store.create(Server(metadata=Metadata(name="server"), spec=spec))
    stored = await region_networks.store.get(SSHCertificateAuthority, name)
    await region_networks.store.delete(
        SSHCertificateAuthority, name, uid=stored.uid
    )  # as whoever ends the project does
    await region_networks.rest()
    condition = await region_networks.available(SSHCertificateAuthority, name)
    assert (condition.reason, condition.message) == ("InUse", "in use by servers.region.unikorn-cloud.org/server")
    assert reference_of(name) in region_networks.identity.references[HOME]
    await region_networks.store.delete(Server, server.name, uid=server.uid)
    await region_networks.rest()
    assert not (await region_networks.store.list(SSHCertificateAuthority)).items
    assert reference_of(name) not in region_networks.identity.references[HOME]


@options(at_work=True)
async def test_an_authority_of_an_existing_cluster_is_taken_into_care_and_can_go(
    region_networks: NetworksEnvironment,
) -> None:
    labels = {NAME: "old", ORGANIZATION: ORG, PROJECT_LABEL: PROJECT}
    metadata = Metadata(name=ABSENT, labels=labels)
    spec = SSHCertificateAuthoritySpec(public_key=KEY)
    await region_networks.store.create(SSHCertificateAuthority(metadata=metadata, spec=spec))
    await region_networks.rest()
    await region_networks.confirm_absence()
    assert (await region_networks.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{ABSENT}")).status == 202
    await region_networks.rest()
    await all_is_gone(region_networks)


async def _left_by(region_networks: NetworksEnvironment, phase: Phase) -> None:
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
    await region_networks.store.create(Operation(metadata=Metadata(name=OPERATION), spec=record))
    await _turn(region_networks, phase)
    spec = AuthorityCreateSpec(organization_id=ORG, project_id=PROJECT, public_key=KEY)
    wanted = AuthorityCreate(metadata=MetadataWrite(name="ca"), spec=spec)
    by = Principal(subject="ann@example.com", type="user")
    await region_networks.identity.add_reference(HOME, reference_of(OPERATION))
    await region_networks.store.create(new_authority(NAME_LEFT, wanted, by, operation=OPERATION))


async def _turn(region_networks: NetworksEnvironment, phase: Phase) -> None:
    found = await region_networks.store.get(Operation, OPERATION)
    await region_networks.store.update_status(found.moved(phase))


@options(at_work=True)
async def test_what_an_undone_operation_left_goes_with_the_reference_of_that_operation(
    region_networks: NetworksEnvironment,
) -> None:
    await _left_by(region_networks, "undoing")
    await region_networks.rest()
    assert not (await region_networks.store.get(SSHCertificateAuthority, NAME_LEFT)).is_deleting
    await _turn(region_networks, "undone")
    await region_networks.rest()
    await all_is_gone(region_networks)


@pytest.mark.parametrize("phase", ["running", "undoing", "stuck"])
@options(at_work=True)
async def test_what_is_deleted_while_its_operation_is_open_waits_for_its_end(
    region_networks: NetworksEnvironment, phase: Phase
) -> None:
    await _left_by(region_networks, phase)
    assert (await region_networks.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{NAME_LEFT}")).status == 202
    await region_networks.rest()
    assert region_networks.identity.references[HOME] == {reference_of(OPERATION)}
    await _turn(region_networks, "done" if phase == "running" else "undone")
    await region_networks.rest()
    await all_is_gone(region_networks)
