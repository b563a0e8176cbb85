"""`remuda region add`, `check`, `update`, `disable`, `enable` and `remove`, and the clouds.yaml that they read."""

import os
from pathlib import Path

import pytest

from remuda.cli.clouds_file import read_cloud
from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.secrets import Secret
from tests.kit.processes.shell import let_in
from tests.kit.processes.terminal import Cloud, Terminal

CLOUDS = """
clouds:
  berlin:
    region_name: RegionOne
    auth:
      auth_url: http://127.0.0.1:1/v3
      username: manager
      password: secret
      user_domain_name: remuda
      domain_name: remuda
  project:
    auth: {auth_url: "https://cloud.example.com/v3", username: jo, password: secret, project_name: ours}
  insecure:
    verify: false
    auth: {auth_url: "https://cloud.example.com/v3", username: jo, password: secret, domain_name: ours}
  token:
    auth_type: v3token
    auth: {auth_url: "https://cloud.example.com/v3", username: jo, password: secret, domain_name: ours}
  bare:
    auth: {username: jo}
  unreadable:
    cacert: /nowhere/ca.pem
    auth: {auth_url: "https://cloud.example.com/v3", username: jo, password: secret, domain_name: ours}
"""


@pytest.fixture
def clouds(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(CLOUDS)
    return path


@pytest.fixture
def admin(
    user: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A terminal of a platform administrator."""

    async def browse(_seconds: float) -> None:
        let_in(capsys.readouterr().out.split()[1], remuda_up.password)

    monkeypatch.setattr("remuda.cli.commands.login.sleep", browse)
    user("login", remuda_up.running.url, "--name", "admin")
    return user


def test_m24_a_region_is_added_checked_disabled_and_removed_by_commands(admin: Terminal) -> None:
    added = admin("region", "add", "simulated", "trial", "--like", "sim-north", "--description", "for a trial")
    assert added.startswith("The region trial was added.\n\nFLAVOR")
    assert added.endswith("Nothing is missing.\n")
    assert max(map(len, added.splitlines())) <= 80
    assert admin("region", "check", "trial") == added.partition("\n\n")[2]
    assert "trial" in admin("region", "list")
    assert "Disabled  " in admin("region", "disable", "trial")
    assert "Disabled      yes" in admin("region", "show", "trial")
    refused = admin.refused("network", "create", "late", "--region", "trial", "--project", "default")
    assert refused.startswith("The region trial is disabled, so nothing new can be created in it")
    assert "yes" not in admin("region", "enable", "trial")
    assert admin("region", "remove", "trial", "--yes", "--wait") == "The region trial was deleted.\n"
    assert "trial" not in admin("region", "list")


def test_only_platform_administrators_add_regions(user: Terminal) -> None:
    refused = user.refused("region", "add", "simulated", "mine", "--like", "sim-north")
    assert "is not allowed" in refused
    assert refused.endswith(": ask a platform administrator.")


def test_an_error_names_the_option_that_is_wrong(admin: Terminal, clouds: Path) -> None:
    simulated = ("region", "add", "simulated", "like-north")
    assert admin.refused(*simulated, "--like", "nowhere").startswith("--like has no cloud nowhere: ")
    assert "--visible-to" in admin.refused(*simulated, "--like", "sim-north", "--visible-to", "ours")
    for option, value in {"--cloud": "berlin", "--flavor": "a", "--external-network": "a", "--vlans": "1-2"}.items():
        assert admin.refused(*simulated, "--like", "sim-north", option, value) == (
            f"{option} is for regions of OpenStack, not of simulated: leave it out."
        )
    openstack = ("region", "add", "openstack", "berlin", "--clouds-file", str(clouds), "--cloud", "berlin")
    assert admin.refused(*openstack, "--like", "sim-north").startswith("--like is for regions of simulated clouds, ")
    assert admin.refused(*openstack, "--vlans", "1-2").startswith("--physical-network is missing")


def test_a_region_of_the_configuration_is_not_said_to_be_missing(admin: Terminal) -> None:
    for words in (("check",), ("update", "--description", "x"), ("disable",), ("enable",), ("remove", "--yes")):
        assert admin.refused("region", words[0], "sim-north", *words[1:]) == (
            "The region sim-north belongs to the configuration of the server: change it there."
        )
    assert "nowhere does not exist" in admin.refused("region", "check", "nowhere")


def test_a_name_is_taken_once_and_disks_have_the_unit_of_the_flavor_list(admin: Terminal) -> None:
    admin("region", "add", "simulated", "twice", "--like", "sim-north")
    assert admin.refused("region", "update", "twice", "--flavor", "a").startswith(
        "--flavor is for regions of OpenStack"
    )
    again = admin.refused("region", "add", "simulated", "twice", "--like", "sim-north")
    assert again == "The region twice exists already: choose another name, or change it with remuda region update."
    shown = {line.split()[0]: line for line in admin("region", "check", "twice").splitlines() if line}
    assert shown["sim-small-1"].endswith("  40 GiB")
    admin("region", "remove", "twice", "--yes", "--wait")


def test_m23_errors_of_a_cloud_name_what_is_in_clouds_yaml(admin: Terminal, clouds: Path) -> None:
    words = ("region", "add", "openstack", "berlin", "--clouds-file", str(clouds), "--cloud")
    assert admin.refused(*words, "berlin") == (
        "clouds.yaml: auth.auth_url is at 127.0.0.1, where no cloud may be: use another address, or add its network "
        "to region.cloud_targets."
    )
    for entry, problem in {
        "paris": "--cloud paris is not in",
        "project": "does not log in to a domain",
        "insecure": "has verify: false",
        "token": "has auth_type v3token",
        "bare": "has no auth.auth_url",
        "unreadable": "names a cacert that cannot be read",
    }.items():
        assert problem in admin.refused(*words, entry)
    assert "--cloud is missing" in admin.refused("region", "add", "openstack", "berlin")
    assert "--like is missing" in admin.refused("region", "add", "simulated", "berlin")
    assert "--vlans" in admin.refused(*words, "berlin", "--vlans", "9-3")


def test_a_cloud_is_found_on_the_usual_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Unusable, match=r"no clouds\.yaml"):
        read_cloud("berlin", None, {})
    home = tmp_path / ".config" / "openstack"
    home.mkdir(parents=True)
    (home / "clouds.yaml").write_text(CLOUDS.replace("RegionOne", "OfHome"))
    assert read_cloud("berlin", None, {}).region == "OfHome"
    (tmp_path / "clouds.yaml").write_text(CLOUDS.replace("RegionOne", "OfDirectory"))
    assert read_cloud("berlin", None, {}).region == "OfDirectory"
    (tmp_path / "chosen.yaml").write_text(CLOUDS.replace("RegionOne", "Chosen"))
    assert read_cloud("berlin", None, {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "chosen.yaml")}).region == "Chosen"


def test_secrets_and_certificates_are_read_from_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").write_text("PEM")
    (tmp_path / "clouds.yaml").write_text(CLOUDS.replace("/nowhere/ca.pem", f"{tmp_path}{os.sep}ca.pem"))
    (tmp_path / "secure.yaml").write_text("clouds: {unreadable: {auth: {password: better}}}")
    found = read_cloud("unreadable", None, {})
    assert (found.ca_certificate, found.password) == ("PEM", Secret("better"))


@pytest.mark.parametrize("text", ["clouds: [", "{", "\x00"])
def test_a_file_that_is_not_yaml_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(text)
    with pytest.raises(Invalid, match="is not YAML"):
        read_cloud("berlin", path, {})
