"""`remuda instance`, against a real process over instant clouds: made, looked at, used and given up."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.cli.running import CODE
from tests.cli.using import JAMMY, SMALL, Terminal, make
from tests.forking import Forked, start


def test_an_instance_is_made_by_names_and_shown_with_them(user: Terminal, tmp_path: Path) -> None:
    user("network", "create", "one-net", "--region", "sim-north", "--wait")
    user("security-group", "create", "web", "--network", "one-net", "--allow", "ingress tcp 80", "--wait")
    script = tmp_path / "boot.yaml"
    script.write_text("#cloud-config\nruncmd: [echo lift-off]\n")
    made = user(
        *("instance", "create", "one", "--network", "one-net", "--flavor", SMALL, "--image", JAMMY, "--public-ip"),
        *("--security-group", "web", "--user-data", str(script), "--description", "The first.", "--wait"),
        *("--tag", "team=rockets", "--tag", "stage=1", "--source", "10.9.0.0/16"),
    )
    found = {line.split("  ")[0]: line.rpartition("  ")[2] for line in made.splitlines()}
    assert {key: found[key] for key in ("Name", "Status", "Power", "Flavor", "Image", "Network", "Region")} == {
        "Name": "one",
        "Status": "provisioned",
        "Power": "Running",
        "Flavor": SMALL,
        "Image": JAMMY,
        "Network": "one-net",
        "Region": "sim-north",
    }
    assert (found["Security groups"], found["Tags"]) == ("web", "team=rockets, stage=1")
    assert found["Public IP"].startswith("198.51.100.")
    assert found["Description"] == "The first."
    assert "Running runcmd: 1 commands" in user("instance", "output", "one")
    assert len(user("instance", "output", "one", "--lines", "2").splitlines()) == 2
    assert found["ID"] in user("instance", "show", found["ID"])


def test_a_list_is_a_table_json_yaml_or_names(user: Terminal) -> None:
    make(user, "lister", "--wait")
    network = ("--network", "lister-net")
    headings, row = user("instance", "list", *network).splitlines()
    assert headings.split("  ")[0] == "NAME"
    assert row.split()[:3] == ["lister", "provisioned", "Running"]
    assert "lister-net" in row
    (told,) = user.json("instance", "list", *network)
    assert yaml.safe_load(user("instance", "list", *network, "-o", "yaml")) == [told]
    assert user("instance", "list", *network, "-o", "name") == "lister\n"
    assert user.json("instance", "show", "lister")["metadata"]["id"] == told["metadata"]["id"]
    assert user("instance", "show", "lister", "-o", "name") == "lister\n"
    user("network", "create", "empty-net", "--region", "sim-south")
    assert user("instance", "list", "--network", "empty-net") == "There is no instance here.\n"


def test_power(user: Terminal) -> None:
    make(user, "power", "--wait")
    assert user("instance", "stop", "power", "--wait") == "The instance power is stopped.\n"
    assert user.json("instance", "show", "power")["status"]["powerState"] == "Stopped"
    assert user("instance", "start", "power", "--wait") == "The instance power runs.\n"
    assert user("instance", "reboot", "power") == "The instance power is being rebooted.\n"
    assert user("instance", "reboot", "power", "--hard") == "The instance power is being rebooted.\n"
    assert user("instance", "stop", "power") == "The instance power is being stopped.\n"


def test_its_console_its_key_and_its_image(user: Terminal, tmp_path: Path) -> None:
    make(user, "keys", "--wait")
    assert user("instance", "console", "keys").startswith("http")
    key = user("instance", "ssh-key", "keys")
    assert key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    file = tmp_path / "key"
    assert user("instance", "ssh-key", "keys", "--save", str(file)) == f"The key is in {file}.\n"
    assert file.read_text().strip() == key.strip()
    assert file.stat().st_mode & 0o777 == 0o600
    said = user.refused("instance", "ssh-key", "keys", "--save", str(tmp_path / "no" / "key"))
    assert said.endswith("cannot be written (No such file or directory): name a place where it can.")
    shown = user("instance", "snapshot", "keys", "keys-snapshot", "--wait")
    assert shown.splitlines()[1].split() == ["State", "ready"]
    assert user("image", "show", "keys-snapshot", "-o", "name") == "keys-snapshot\n"
    told = "The image keys-snapshot is being deleted.\n"
    assert user("image", "delete", "keys-snapshot", "--yes") == told


def test_what_happened_and_why_it_is_as_it_is(user: Terminal) -> None:
    make(user, "past", "--wait")
    headings, *events = user("instance", "timeline", "past").splitlines()
    assert headings.split("  ")[0] == "TIME (UTC)"
    assert "instance.create" in events[0]
    assert "It is as it was asked to be." in events[-1]
    assert len(user("instance", "timeline", "past", "--limit", "2").splitlines()) == 3
    assert user.json("instance", "timeline", "past")[-1]["sentence"] in events[-1]
    assert len(user("instance", "timeline", "past", "-o", "name").split()) == len(events)
    assert user("instance", "explain", "past").startswith("It is as it was asked to be")
    assert user.json("instance", "explain", "past")["waits"] == []
    assert user("instance", "explain", "past", "-o", "name") == f"{user.json('instance', 'explain', 'past')['state']}\n"
    gone = user.json("instance", "show", "past")["metadata"]["id"]
    user("instance", "delete", "past", "--yes", "--wait")
    assert user("instance", "timeline", gone).splitlines()[1] == events[0], "it outlives the instance"
    assert user.refused("instance", "timeline", "past").startswith("There is no instance past: ")


def test_nothing_is_deleted_unless_somebody_agrees(user: Terminal) -> None:
    make(user, "doomed", "--wait")
    said = user.refused("instance", "delete", "doomed")
    assert said == (
        "The instance doomed will be deleted with its disk and its addresses, and cannot be had back. "
        "Nobody is there to ask: say --yes if that is meant."
    )
    assert user("instance", "show", "doomed", "-o", "name") == "doomed\n"
    assert user("instance", "delete", "doomed", "--yes", "--wait") == "The instance doomed is gone.\n"
    assert user.refused("instance", "show", "doomed").startswith("There is no instance doomed: ")


def test_what_is_protected_stays(user: Terminal) -> None:
    make(user, "kept", "--protect-deletion", "--wait")
    assert "from deletion" in user("instance", "show", "kept")
    assert "protect" in user.refused("instance", "delete", "kept", "--yes")
    user("instance", "update", "kept", "--no-protect-deletion", "--wait")
    assert user("instance", "delete", "kept", "--yes") == "The instance kept is being deleted.\n"


def test_names_that_are_not_there_are_one_sentence_with_those_that_are(user: Terminal) -> None:
    user("network", "create", "lone", "--region", "sim-north")
    create = ("instance", "create", "x", "--network", "lone")
    assert "choose from" in user.refused("instance", "create", "x", "--network", "pod", "--flavor", "a", "--image", "b")
    said = user.refused(*create, "--flavor", "huge", "--image", JAMMY)
    assert said.startswith("There is no flavor huge: choose from sim-arm-8, sim-gpu-64, sim-gpu-8, ")
    assert user.refused(*create, "--flavor", SMALL, "--image", "dos").startswith("There is no image dos: choose from ")
    chosen = ("--flavor", SMALL, "--image", JAMMY)
    groups = user.refused(*create, *chosen, "--security-group", "web-nope")
    assert groups == "There is no security group web-nope: there is none at all yet."
    assert user.refused(*create, *chosen, "--tag", "plain") == "--tag plain is no tag: give it as name=value."
    assert "cannot be read (No such file" in user.refused(*create, *chosen, "--user-data", "/nowhere/boot.yaml")
    lost = "11111111-1111-4111-8111-111111111111"
    assert user.refused("instance", "show", lost) == f"There is no instance {lost}: check the id, and as whom you ask."


def test_what_the_api_refuses_is_its_sentence(user: Terminal) -> None:
    make(user, "taken", "--wait")
    again = ("instance", "create", "taken", "--network", "taken-net", "--flavor", SMALL, "--image", JAMMY)
    assert user.refused(*again) == "The network has an instance named 'taken' already: choose another name."
    assert "/metadata/name" in user.refused(
        *("instance", "create", "b a d", "--network", "taken-net", "--flavor", SMALL, "--image", JAMMY)
    )
    said = user.refused("network", "delete", "taken-net", "--yes")
    assert said == "network is in use and cannot be deleted: delete first what uses it."


@contextmanager
def watching(user: Terminal, *words: str) -> Iterator[Forked]:
    """A command that goes on, in a process of its own, stopped as people do."""
    home = {"XDG_CONFIG_HOME": str(user.file.parents[1])}
    with start(CODE, *words, "--watch", environment=home) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("output", ["table", "json", "yaml", "name"])
def test_a_list_is_followed_as_it_changes(output: str, user: Terminal) -> None:
    name = f"seen-{output}"
    user("network", "create", f"{name}-net", "--region", "sim-north", "--wait")
    with watching(user, "instance", "list", "--network", f"{name}-net", "-o", output) as process:
        assert process.stdout is not None
        if output == "table":
            assert process.stdout.readline().split()[:3] == ["CHANGE", "NAME", "STATUS"]
        user("instance", "create", name, "--network", f"{name}-net", "--flavor", SMALL, "--image", JAMMY)
        line = process.stdout.readline()
        if output == "table":
            assert line.split()[:2] == ["added", name]
            assert f"{name}-net" in line
        elif output == "json":
            assert (json.loads(line)["type"], json.loads(line)["object"]["metadata"]["name"]) == ("added", name)
        elif output == "yaml":
            assert (line, process.stdout.readline()) == ("---\n", "type: added\n")
        else:
            assert line == f"added {name}\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.wait() == 130
