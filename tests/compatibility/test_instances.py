"""Instances, as the Terraform provider has them."""

import base64

import pytest

from tests.kit.compatibility.environment import CompatibilityEnvironment, statuses
from tests.kit.compatibility.examples import instance, ssh_authority
from tests.kit.compatibility.provider import AGENT, DiagnosticError
from tests.kit.compatibility.resources import INSTANCE, SECURITY_GROUP, SSH_AUTHORITY
from tests.kit.compute.requests import at
from tests.kit.compute.updates import ROCKY, SMALL
from tests.kit.region.environment import NORTH

USER_DATA = "#!/bin/sh\ntrue\n"
TRACE = "trace_id: [0-9a-f]{32}$"


async def test_an_instance_with_nothing_but_what_is_needed_comes_back_as_it_was_sent(
    environment: CompatibilityEnvironment,
) -> None:
    terraform = environment.provider
    made = await terraform.create(INSTANCE, await instance(environment))
    assert (made["region_id"], made["power_state"], made["public_ip"]) == (NORTH, "Running", None)
    assert made["private_ip"].startswith("10.1.0.")
    imported = await terraform.refresh(INSTANCE, made["id"])
    assert imported == made, "an import finds what was final when it first was provisioned"
    await terraform.destroy(INSTANCE, made["id"])
    assert await terraform.refresh(INSTANCE, made["id"]) is None
    await terraform.destroy(INSTANCE, made["id"])


async def test_everything_that_is_changed_in_place_keeps_the_private_address(
    environment: CompatibilityEnvironment,
) -> None:
    terraform = environment.provider
    config = await instance(environment, enable_public_ip=True, tags={"team": "a"}, description="of mine")
    groups = [
        (await terraform.create(SECURITY_GROUP, {"name": name, "network_id": config["network_id"], "rules": []}))
        for name in ("second", "first")
    ]
    ids = [group["id"] for group in groups]
    config |= {"security_group_ids": ids, "allowed_destinations": ["192.168.0.0/24"], "user_data": USER_DATA}
    state = await terraform.create(INSTANCE, config)
    public = state["public_ip"]
    assert public is not None
    for change in (
        {"tags": {"team": "b"}, "description": None},
        {"security_group_ids": [*reversed(ids)], "allowed_destinations": None},
        {"security_group_ids": None},
        {"user_data": "#!/bin/sh\nfalse\n"},
        {"image_id": ROCKY},
        {"flavor_id": SMALL, "user_data": None},
        {"enable_public_ip": False},
        {"enable_public_ip": None, "tags": None},
    ):
        config |= change
        state = await terraform.update(INSTANCE, state, config)
        await environment.compute.until(state["id"], "provisioned")
    read = await terraform.refresh(INSTANCE, state["id"])
    assert read is not None
    assert (read["private_ip"], read["public_ip"], read["power_state"]) == (state["private_ip"], None, "Running")
    await terraform.destroy(INSTANCE, state["id"])


async def test_whether_it_has_a_public_address_is_told_as_it_was_said(environment: CompatibilityEnvironment) -> None:
    config = await instance(environment)
    for said in (None, False, True):
        made = await environment.provider.create(INSTANCE, {**config, "name": f"web-{said}", "enable_public_ip": said})
        assert made["enable_public_ip"] is said
        assert (made["public_ip"] is not None) == bool(said)


async def test_user_data_is_the_same_bytes_also_if_it_was_encoded_twice_as_until_1_4_0(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment, user_data=f"{USER_DATA}# \u00fc\n")
    await terraform.create(INSTANCE, config)
    encoded = base64.b64encode(b"#cloud-config\npackages: [nginx]\n").decode()
    made = await terraform.create(INSTANCE, {**config, "name": "twice", "user_data": encoded})
    assert made["user_data"] == encoded
    console = (await environment.compute.root.get(at(made["id"], "consoleoutput"))).json["contents"]
    assert "nginx" in console, "it was applied"


async def test_user_data_that_cloud_init_would_not_apply_is_refused_at_once(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment, user_data=USER_DATA)
    made = await terraform.create(INSTANCE, config)
    for nothing in ("no format at all", base64.b64encode(b"nor is this").decode()):
        with pytest.raises(DiagnosticError, match=r"status code 422, code: .*, message: .*userData"):
            await terraform.update(INSTANCE, made, {**config, "user_data": nothing})
    assert await terraform.refresh(INSTANCE, made["id"]) == made


async def test_a_rename_is_an_error_of_the_apply_that_names_the_field(environment: CompatibilityEnvironment) -> None:
    terraform, config = environment.provider, await instance(environment)
    made = await terraform.create(INSTANCE, config)
    with pytest.raises(DiagnosticError, match=r"status code 422, code: .*, message: .*instance names are immutable"):
        await terraform.update(INSTANCE, made, {**config, "name": "other"})
    assert await terraform.refresh(INSTANCE, made["id"]) == made


async def test_the_key_is_a_data_source_and_is_missing_where_an_authority_says_who_may_log_in(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment)
    compute = terraform.clients["compute"]
    made = await terraform.create(INSTANCE, config)
    key = await compute.send("GET", f"/api/v2/instances/{made['id']}/sshkey", headers=AGENT)
    assert (key.status, key.json["privateKey"].splitlines()[0][:11]) == (200, "-----BEGIN ")
    authority = await terraform.create(SSH_AUTHORITY, await ssh_authority(environment))
    other = {**config, "name": "other", "ssh_certificate_authority_id": authority["id"]}
    made = await terraform.create(INSTANCE, other)
    key = await compute.send("GET", f"/api/v2/instances/{made['id']}/sshkey", headers=AGENT)
    assert (key.status, key.json["error"]) == (404, "not_found")
    with pytest.raises(DiagnosticError, match=r"status code 403, code: forbidden, message: .*in use"):
        await terraform.destroy(SSH_AUTHORITY, authority["id"])


async def test_what_is_refused_is_shown_with_status_code_and_message(environment: CompatibilityEnvironment) -> None:
    terraform, config = environment.provider, await instance(environment)
    wrong = {**config, "flavor_id": "f0000000-0000-4000-8000-0000000000ff"}
    message = "requested flavor does not exist or is not accessible"
    with pytest.raises(DiagnosticError, match=f"status code 400, code: invalid_request, message: {message}, {TRACE}"):
        await terraform.create(INSTANCE, wrong)
    await terraform.create(INSTANCE, config)
    with pytest.raises(DiagnosticError, match="status code 409, code: conflict"):
        await terraform.create(INSTANCE, config)


async def test_addresses_stay_at_every_look_while_the_image_and_the_flavor_change(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, config = environment.provider, await instance(environment, enable_public_ip=True)
    made = state = await terraform.create(INSTANCE, config)
    async with environment.watching(INSTANCE) as seen:
        for change in ({"image_id": ROCKY}, {"flavor_id": SMALL}):
            config |= change
            state = await terraform.update(INSTANCE, state, config)
            await terraform.until_ready(INSTANCE, made["id"])
    assert {(look["private_ip"], look["public_ip"]) for look in seen} == {(made["private_ip"], made["public_ip"])}
    shown = ["provisioned", "provisioning", "provisioned", "provisioning", "provisioned"]
    assert statuses(seen, made["id"]) == shown


async def test_an_instance_keeps_its_authority_over_a_change_that_says_it_again(
    environment: CompatibilityEnvironment,
) -> None:
    terraform = environment.provider
    authority = await terraform.create(SSH_AUTHORITY, await ssh_authority(environment))
    config = await instance(environment, ssh_certificate_authority_id=authority["id"])
    made = await terraform.create(INSTANCE, config)
    changed = await terraform.update(INSTANCE, made, {**config, "tags": {"team": "a"}})
    assert changed["ssh_certificate_authority_id"] == authority["id"]
