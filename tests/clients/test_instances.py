"""Instances, as the Terraform provider has them."""

import base64
from typing import Any

import pytest

from remuda.providers.simulated.faults import CloudFailed
from tests.clients.ground import Ground, apply
from tests.clients.provider import AGENT, DiagnosticError
from tests.clients.resources import INSTANCE, SECURITY_GROUP, SSH_AUTHORITY
from tests.compute.asking import DEBIAN, KEY, at
from tests.compute.changing import ROCKY, SMALL
from tests.region.house import NORTH, STANDARD

USER_DATA = "#!/bin/sh\ntrue\n"
UNSAID = (
    "description",
    "tags",
    "user_data",
    "enable_public_ip",
    "security_group_ids",
    "allowed_destinations",
    "ssh_certificate_authority_id",
)


async def _config(ground: Ground, **more: object) -> dict[str, object]:
    needed = {"network_id": await ground.network(), "flavor_id": STANDARD, "image_id": DEBIAN}
    return {"name": "web", **ground.where, **needed, **dict.fromkeys(UNSAID), **more}


def test_an_instance_with_nothing_but_what_is_needed_comes_back_as_it_was_sent() -> None:
    async def scenario(ground: Ground) -> None:
        terraform = ground.provider
        made = await terraform.create(INSTANCE, await _config(ground))
        assert (made["region_id"], made["power_state"], made["public_ip"]) == (NORTH, "Running", None)
        assert made["private_ip"].startswith("10.1.0.")
        imported = await terraform.refresh(INSTANCE, made["id"])
        assert imported == made, "an import finds what was final when it first was provisioned"
        await terraform.destroy(INSTANCE, made["id"])
        assert await terraform.refresh(INSTANCE, made["id"]) is None
        await terraform.destroy(INSTANCE, made["id"])

    apply(scenario)


def test_everything_that_is_changed_in_place_keeps_the_private_address() -> None:
    async def scenario(ground: Ground) -> None:
        terraform = ground.provider
        config = await _config(ground, enable_public_ip=True, tags={"team": "a"}, description="of mine")
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
            await ground.house.until(state["id"], "provisioned")
        read = await terraform.refresh(INSTANCE, state["id"])
        assert read is not None
        assert (read["private_ip"], read["public_ip"], read["power_state"]) == (state["private_ip"], None, "Running")
        await terraform.destroy(INSTANCE, state["id"])

    apply(scenario)


def test_whether_it_has_a_public_address_is_told_as_it_was_said() -> None:
    async def scenario(ground: Ground) -> None:
        config = await _config(ground)
        for said in (None, False, True):
            made = await ground.provider.create(INSTANCE, {**config, "name": f"web-{said}", "enable_public_ip": said})
            assert made["enable_public_ip"] is said
            assert (made["public_ip"] is not None) == bool(said)

    apply(scenario)


def test_user_data_is_the_same_bytes_also_if_it_was_encoded_twice_as_until_1_4_0() -> None:
    async def scenario(ground: Ground) -> None:
        terraform, config = ground.provider, await _config(ground, user_data=f"{USER_DATA}# \u00fc\n")
        await terraform.create(INSTANCE, config)
        encoded = base64.b64encode(b"#cloud-config\npackages: [nginx]\n").decode()
        made = await terraform.create(INSTANCE, {**config, "name": "twice", "user_data": encoded})
        assert made["user_data"] == encoded
        console = (await ground.house.root.get(at(made["id"], "consoleoutput"))).json["contents"]
        assert "nginx" in console, "it was applied"

    apply(scenario)


def test_user_data_that_cloud_init_would_not_apply_is_refused_at_once() -> None:
    async def scenario(ground: Ground) -> None:
        terraform, config = ground.provider, await _config(ground, user_data=USER_DATA)
        made = await terraform.create(INSTANCE, config)
        for nothing in ("no format at all", base64.b64encode(b"nor is this").decode()):
            with pytest.raises(DiagnosticError, match=r"status code 422, code: .*, message: .*userData"):
                await terraform.update(INSTANCE, made, {**config, "user_data": nothing})
        assert await terraform.refresh(INSTANCE, made["id"]) == made

    apply(scenario)


def test_a_rename_is_an_error_of_the_apply_that_names_the_field() -> None:
    async def scenario(ground: Ground) -> None:
        terraform, config = ground.provider, await _config(ground)
        made = await terraform.create(INSTANCE, config)
        with pytest.raises(
            DiagnosticError, match=r"status code 422, code: .*, message: .*instance names are immutable"
        ):
            await terraform.update(INSTANCE, made, {**config, "name": "other"})
        assert await terraform.refresh(INSTANCE, made["id"]) == made

    apply(scenario)


def test_the_key_is_a_data_source_and_is_missing_where_an_authority_says_who_may_log_in() -> None:
    async def scenario(ground: Ground) -> None:
        terraform, config = ground.provider, await _config(ground)
        compute = terraform.clients["compute"]
        made = await terraform.create(INSTANCE, config)
        key = await compute.send("GET", f"/api/v2/instances/{made['id']}/sshkey", headers=AGENT)
        assert (key.status, key.json["privateKey"].splitlines()[0][:11]) == (200, "-----BEGIN ")
        authority = await terraform.create(SSH_AUTHORITY, {"name": "ca", **ground.where, "public_key": KEY})
        other = {**config, "name": "other", "ssh_certificate_authority_id": authority["id"]}
        made = await terraform.create(INSTANCE, other)
        key = await compute.send("GET", f"/api/v2/instances/{made['id']}/sshkey", headers=AGENT)
        assert (key.status, key.json["error"]) == (404, "not_found")
        with pytest.raises(DiagnosticError, match=r"status code 403, code: forbidden, message: .*in use"):
            await terraform.destroy(SSH_AUTHORITY, authority["id"])

    apply(scenario)


def test_what_is_refused_is_shown_with_status_code_and_message() -> None:
    async def scenario(ground: Ground) -> None:
        terraform, config = ground.provider, await _config(ground)
        wrong = {**config, "flavor_id": "f0000000-0000-4000-8000-0000000000ff"}
        message = "requested flavor does not exist or is not accessible"
        with pytest.raises(DiagnosticError, match=f"status code 400, code: invalid_request, message: {message}"):
            await terraform.create(INSTANCE, wrong)
        await terraform.create(INSTANCE, config)
        with pytest.raises(DiagnosticError, match="status code 409, code: conflict"):
            await terraform.create(INSTANCE, config)

    apply(scenario)


def test_a_cloud_that_fails_for_a_while_is_no_error_to_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[Any] = []

    async def scenario(ground: Ground) -> None:
        config, servers = await _config(ground), ground.house.region.north.provider.servers
        assert servers is not None
        create = type(servers).create_server

        async def fail_at_first(self: Any, *asked: Any, **more: Any) -> Any:
            if len(failed) < 3:
                failed.append(asked)
                raise CloudFailed
            return await create(self, *asked, **more)

        monkeypatch.setattr(type(servers), "create_server", fail_at_first)
        made = await ground.provider.create(INSTANCE, config)
        assert (made["power_state"], len(failed)) == ("Running", 3)
        await ground.provider.destroy(INSTANCE, made["id"])

    apply(scenario)
