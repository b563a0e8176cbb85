"""`remuda instance`, against a real process over instant clouds: made, looked at, used and given up."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.kit.processes.forked import Forked, start
from tests.kit.processes.program import CODE, REMUDA, remuda
from tests.kit.processes.terminal import JAMMY, SMALL, Cloud, Terminal, make, until


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
    assert user("instance", "list", "--network", "empty-net") == "No instance found.\n"


def test_power(user: Terminal) -> None:
    make(user, "power", "--wait")
    assert user("instance", "stop", "power", "--wait") == "The instance power is stopped.\n"
    assert user.json("instance", "show", "power")["status"]["powerState"] == "Stopped"
    assert user("instance", "stop", "power") == "The instance power is already stopped.\n"
    assert user("instance", "start", "power", "--wait") == "The instance power is running.\n"
    assert user("instance", "start", "power", "--wait") == "The instance power is already running.\n"
    assert user("instance", "reboot", "power") == "The instance power is being rebooted.\n"
    assert user("instance", "reboot", "power", "--hard") == "The instance power is being rebooted.\n"
    assert user("instance", "stop", "power") == "The instance power is being stopped.\n"


def test_its_console_its_key_and_its_image(user: Terminal, tmp_path: Path) -> None:
    make(user, "keys", "--wait")
    assert user("instance", "console", "keys").startswith("http")
    key = user("instance", "ssh-key", "keys")
    assert key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    file = tmp_path / "key"
    assert user("instance", "ssh-key", "keys", "--save", str(file)) == f"The key was written to {file}.\n"
    assert file.read_text().strip() == key.strip()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(f"{key}\n")
    file.chmod(0o644)
    assert user("instance", "ssh-key", "keys", "--save", str(file)) == f"The key was written to {file}.\n", (
        "it is the same"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    said = user.refused("instance", "ssh-key", "keys", "--save", str(tmp_path / "no" / "key"))
    assert said.endswith("cannot be written (No such file or directory): choose another path.")
    shown = user("instance", "snapshot", "keys", "keys-snapshot", "--wait")
    assert shown.splitlines()[1].split() == ["State", "ready"]
    assert user("image", "show", "keys-snapshot", "-o", "name") == "keys-snapshot\n"
    told = "The image keys-snapshot is being deleted.\n"
    assert user("image", "delete", "keys-snapshot", "--yes") == told


def test_an_instance_with_a_certificate_authority_says_why_it_has_no_key(user: Terminal, tmp_path: Path) -> None:
    (tmp_path / "ca.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8kUe1GJ8Lx5y2J1PBoQ0q3dXQd6mCkJ0mF3rV9d2cT ca@example.com\n"
    )
    user("ssh-ca", "create", "keyless", "--key", str(tmp_path / "ca.pub"))
    make(user, "signed", "--ssh-ca", "keyless", "--wait")
    assert user.refused("instance", "ssh-key", "signed") == (
        "The instance signed has no SSH key, because it trusts the SSH certificate authority keyless: "
        "log in with a certificate that this authority has signed."
    )


def test_stopping_a_stopped_instance_is_no_error(user: Terminal) -> None:
    make(user, "idle", "--wait")
    assert user("instance", "stop", "idle", "--wait") == "The instance idle is stopped.\n"
    assert user("instance", "stop", "idle", "--wait") == "The instance idle is already stopped.\n"
    assert user("instance", "start", "idle", "--wait") == "The instance idle is running.\n"
    assert user("instance", "start", "idle", "--wait") == "The instance idle is already running.\n"


def test_a_key_is_not_written_over_anything_else(user: Terminal, tmp_path: Path) -> None:
    make(user, "careful", "--wait")
    file, link, folder = tmp_path / "id_ed25519", tmp_path / "link", tmp_path / "folder"
    file.write_text("mine")
    link.symlink_to(tmp_path / "nowhere")
    folder.mkdir()
    for taken in (file, link, folder):
        said = user.refused("instance", "ssh-key", "careful", "--save", str(taken))
        remedy = "give another name, or remove the file first."
        assert said == f"--save {taken} exists and was not changed: {remedy}"
    assert (file.read_text(), link.is_symlink(), folder.is_dir()) == ("mine", True, True)


@pytest.mark.parametrize(("encoding", "more"), [("latin-1", []), ("ascii", ["-o", "json"]), ("ascii", ["-o", "yaml"])])
def test_letters_that_a_terminal_cannot_write_are_escaped(encoding: str, more: list[str], user: Terminal) -> None:
    name = f"snow-{encoding}-{len(more)}{''.join(more[1:])}"
    user("network", "create", name, "--region", "sim-north", "--description", "☃")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "XDG_CONFIG_HOME": str(user.file.parents[1])}
    command = [*REMUDA, "network", "show", name, *more]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert "\\u2603" in told.stdout


def test_what_happened_and_why_it_is_as_it_is(user: Terminal) -> None:
    make(user, "past", "--wait")
    headings, *events = user("instance", "timeline", "past").splitlines()
    assert headings.split("  ")[0] == "TIME (UTC)"
    assert "The instance was requested by " in events[0]
    assert "The instance is provisioned." in events[-1]
    assert len(user("instance", "timeline", "past", "--limit", "2").splitlines()) == 3
    assert user.json("instance", "timeline", "past")[-1]["message"] in events[-1]
    assert len(user("instance", "timeline", "past", "-o", "name").split()) == len(events)
    assert user("instance", "explain", "past").startswith("The instance is provisioned")
    assert user.json("instance", "explain", "past")["waitingFor"] == []
    assert user("instance", "explain", "past", "-o", "name") == f"{user.json('instance', 'explain', 'past')['state']}\n"
    gone = user.json("instance", "show", "past")["metadata"]["id"]
    user("instance", "delete", "past", "--yes", "--wait")
    assert user("instance", "timeline", gone).splitlines()[1] == events[0], "it outlives the instance"
    assert user.refused("instance", "timeline", "past").startswith("The instance past does not exist: ")


def test_who_was_let_in_is_in_the_timeline_and_what_let_in_is_not(user: Terminal) -> None:
    make(user, "let-in", "--wait")
    address = user("instance", "console", "let-in").strip()
    key = user("instance", "ssh-key", "let-in").splitlines()[1]
    whole = user("instance", "timeline", "let-in")
    console, handed = whole.splitlines()[-2:]
    assert " The address of the console was read by " in console
    assert " The private SSH key was read by " in handed
    everything = whole + user("instance", "timeline", "let-in", "-o", "json")
    assert not [each for each in (address, address.partition("token=")[2], key) if each in everything]


def test_a_server_that_breaks_is_explained_and_a_rebuild_is_told_once(user: Terminal, remuda_up: Cloud) -> None:
    make(user, "frail", "--wait")
    remuda("sim", "fail", "frail", "--data", str(remuda_up.running.data))
    until(lambda: user("instance", "explain", "frail", "-o", "name") == "failed\n")
    first, second, third = user("instance", "explain", "frail").splitlines()
    assert first == "The instance was provisioned, and its server failed."
    assert second.endswith("UTC): the host failed.")
    assert third.startswith("A user who may update the instance can resolve this. Rebuild the instance")
    user("instance", "update", "frail", "--image", "debian-12-amd64", "--yes", "--wait")
    told = user("instance", "timeline", "frail").splitlines()
    assert len([line for line in told if "The server was rebuilt." in line]) == 1
    assert not [line for line in told if "the server is being rebuilt or replaced" in line]
    assert user("instance", "explain", "frail").startswith("The instance is provisioned and running")


def test_nothing_is_deleted_unless_somebody_agrees(user: Terminal) -> None:
    make(user, "doomed", "--wait")
    said = user.refused("instance", "delete", "doomed")
    assert said == (
        "The instance doomed will be deleted with its disk and its addresses. This cannot be undone. "
        "Confirmation needs a terminal: add --yes to confirm."
    )
    assert user("instance", "show", "doomed", "-o", "name") == "doomed\n"
    assert user("instance", "delete", "doomed", "--yes", "--wait") == "The instance doomed was deleted.\n"
    assert user.refused("instance", "show", "doomed").startswith("The instance doomed does not exist: ")


def test_what_is_protected_stays(user: Terminal) -> None:
    make(user, "kept", "--protect-deletion", "--wait")
    assert "from deletion" in user("instance", "show", "kept")
    assert user.refused("instance", "delete", "kept", "--yes") == (
        "The instance is protected from deletion: remove the protection with remuda instance update "
        "--no-protect-deletion, then delete it."
    )
    user("instance", "update", "kept", "--no-protect-deletion", "--wait")
    assert user("instance", "delete", "kept", "--yes") == "The instance kept is being deleted.\n"


def test_another_of_its_name_is_not_deleted_in_its_place(user: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    make(user, "twin", "--wait")
    again = ("instance", "create", "twin", "--network", "twin-net", "--flavor", SMALL, "--image", JAMMY, "--wait")

    def meanwhile(what: str, *, yes: bool) -> None:
        assert what.startswith("The instance twin will be deleted")
        if not yes:
            with ThreadPoolExecutor() as elsewhere:
                elsewhere.submit(user, "instance", "delete", "twin", "--yes", "--wait").result()
                elsewhere.submit(user, *again).result()

    monkeypatch.setattr("remuda.cli.crud.confirm", meanwhile)
    said = user.refused("instance", "delete", "twin")
    assert said.endswith("was changed in the meantime, and nothing was done: show it again, then decide.")
    assert user("instance", "show", "twin", "-o", "name") == "twin\n"
    shown = user("instance", "timeline", "twin")
    assert "INCARNATION" in shown.splitlines()[0]
    assert len({line.split()[2] for line in shown.splitlines()[1:] if line[:2] == "20"}) == 2


def test_a_number_that_cannot_be_is_told_in_the_words_of_the_command(user: Terminal) -> None:
    make(user, "counted", "--wait")
    assert user.refused("instance", "output", "counted", "--lines", "0").endswith("give a number from 1 to 100000.")
    said = user.refused("instance", "timeline", "counted", "--limit", "1001")
    assert "--limit" in said
    assert said.endswith("give a number from 1 to 1000.")


def test_a_flavor_that_an_image_does_not_fit_is_refused_with_a_remedy(user: Terminal) -> None:
    user("network", "create", "odd-net", "--region", "sim-north", "--wait")
    create = ("instance", "create", "odd", "--network", "odd-net", "--flavor", "sim-arm-8", "--image", JAMMY)
    assert user.refused(*create).endswith(": choose a flavor and an image of the same architecture.")


def test_names_that_are_not_there_are_one_sentence_with_those_that_are(user: Terminal) -> None:
    user("network", "create", "lone", "--region", "sim-north")
    create = ("instance", "create", "x", "--network", "lone")
    assert "choose from" in user.refused("instance", "create", "x", "--network", "pod", "--flavor", "a", "--image", "b")
    said = user.refused(*create, "--flavor", "huge", "--image", JAMMY)
    assert said.startswith("The flavor huge does not exist: choose from sim-arm-8, sim-gpu-64, sim-gpu-8, ")
    assert user.refused(*create, "--flavor", SMALL, "--image", "dos").startswith(
        "The image dos does not exist: choose from "
    )
    chosen = ("--flavor", SMALL, "--image", JAMMY)
    groups = user.refused(*create, *chosen, "--security-group", "web-nope")
    assert groups == "The security group web-nope does not exist: there are no security groups yet."
    assert user.refused(*create, *chosen, "--tag", "plain") == "--tag plain is not a tag: give it as name=value."
    assert "cannot be read (No such file" in user.refused(*create, *chosen, "--user-data", "/nowhere/boot.yaml")
    lost = "11111111-1111-4111-8111-111111111111"
    remedy = "check the id, and the login with remuda context list."
    assert user.refused("instance", "show", lost) == f"The instance {lost} does not exist: {remedy}"


def test_what_the_api_rejects_is_its_sentence(user: Terminal) -> None:
    make(user, "taken", "--wait")
    again = ("instance", "create", "taken", "--network", "taken-net", "--flavor", SMALL, "--image", JAMMY)
    assert user.refused(*again) == "The network already has an instance named 'taken': choose another name."
    said = user.refused("instance", "create", "b a d", *again[3:])
    assert said.startswith("NAME 'b a d' is not valid: use 1 to 63 letters, ")
    said = user.refused("network", "delete", "taken-net", "--yes")
    assert said == "Network is in use by the instance taken and cannot be deleted: delete first what uses it."


@contextmanager
def watching(user: Terminal, *words: str) -> Iterator[Forked]:
    """A command that goes on, in a process of its own, stopped as users do."""
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
        process.communicate(timeout=120)
        assert process.wait() == 130
