"""The nouns that instances stand on, against a real process: networks, groups, authorities and offers."""

import json
from pathlib import Path
from typing import Any

import pytest

from remuda.cli.client.contexts import ContextsFile, LoginContext, LoginContexts, LoginTokens, NamedId
from remuda.kernel.secrets import Secret
from tests.kit.processes.terminal import JAMMY, SMALL, Terminal
from tests.kit.scripted_server import MADE, Server, told

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8kUe1GJ8Lx5y2J1PBoQ0q3dXQd6mCkJ0mF3rV9d2cT ca@example.com"


def test_networks(user: Terminal) -> None:
    made = user("network", "create", "pad", "--region", "sim-north", "--dns", "9.9.9.9", "--dns", "1.1.1.1", "--wait")
    found = {line.split("  ")[0]: line.rpartition("  ")[2] for line in made.splitlines()}
    assert (found["Status"], found["Region"], found["Prefix"]) == ("provisioned", "sim-north", "10.0.0.0/24")
    assert found["DNS"] == "9.9.9.9, 1.1.1.1"
    assert "pad" in user("network", "list", "-o", "name").split()
    assert "sim-north" in user("network", "list")
    user("network", "update", "pad", "--dns", "8.8.8.8", "--description", "The pad.", "--wait")
    changed = user.json("network", "show", "pad")
    assert (changed["spec"]["dnsNameservers"], changed["metadata"]["description"]) == (["8.8.8.8"], "The pad.")
    user("network", "update", "pad", "--tag", "a=b")
    assert user.json("network", "show", "pad")["metadata"]["description"] == "The pad.", "what is not said stays"
    user("network", "update", "pad", "--no-dns")
    assert user.json("network", "show", "pad")["spec"]["dnsNameservers"] == []
    assert user.refused("network", "delete", "pad").endswith("Confirmation needs a terminal: add --yes to confirm.")
    assert user("network", "delete", "pad", "--yes", "--wait") == "The network pad was deleted.\n"
    said = user.refused("network", "create", "pad", "--region", "moon")
    assert said == "The region moon does not exist: choose from sim-north, sim-south."
    assert "/24" in user.refused("network", "create", "pad", "--region", "sim-north", "--prefix", "10.0.0.0/30")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prefix", "10.0.0.0/99"), "--prefix 10.0.0.0/99 is not an IPv4 prefix: give one such as 10.0.0.0/24."),
        (
            ("--prefix", "10.0.0.0/31"),
            "--prefix 10.0.0.0/31 is too small for a network: give one of /24 or larger, such as 10.0.0.0/24.",
        ),
        (
            ("--dns", "9.9.9.9", "--dns", "999.1.1.1"),
            "--dns 999.1.1.1 is not an IPv4 address: give one such as 10.0.0.1.",
        ),
        (("--dns", "::1"), "--dns ::1 is not an IPv4 address, IPv6 is not supported: give one such as 10.0.0.1."),
    ],
)
def test_an_address_that_is_none_is_told_with_its_option(words: tuple[str, ...], said: str, user: Terminal) -> None:
    assert user.refused("network", "create", "astray", "--region", "sim-north", *words) == said
    if words[0] == "--dns":
        assert user.refused("network", "update", "astray", *words) == said


def test_an_existing_name_is_refused_unless_duplicates_are_allowed_and_then_ids_are_shown(
    user: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "ca.pub").write_text(KEY)
    creates = {
        "network": ("network", "create", "twin", "--region", "sim-north"),
        "security group": ("security-group", "create", "twin", "--network", "{network}"),
        "SSH certificate authority": ("ssh-ca", "create", "twin", "--key", str(tmp_path / "ca.pub")),
    }
    network = ""
    for noun, words in creates.items():
        create = tuple(word.format(network=network) for word in words)
        first = json.loads(user(*create, "-o", "json"))["metadata"]["id"]
        network = network or first
        said = user.refused(*create)
        assert said == (
            f"The {noun} twin exists already, with the id {first}: choose another name, or add --allow-duplicate."
        )
        second = user(*create, "--allow-duplicate", "-o", "name").strip()
        assert second != "twin"
        assert user(create[0], "show", second, "-o", "name").strip() == second, "a command takes what one prints"
        assert "The name twin matches 2" in user.refused(create[0], "show", "twin")
        twins = {each["metadata"]["id"] for each in user.json(create[0], "list") if each["metadata"]["name"] == "twin"}
        listed = user(create[0], "list", "-o", "name").split()
        assert twins <= set(listed), "other commands would not take the name"
        assert "twin" not in listed
    assert network in user("security-group", "list"), "an ambiguous name says nothing"
    for noun in ("ssh-ca", "security-group", "network"):
        for each in user.json(noun, "list"):
            if each["metadata"]["name"] == "twin":
                user(noun, "delete", each["metadata"]["id"], "--yes")


@pytest.mark.parametrize("name", ["a b", "", "a-", "a" * 64, "it's"])
def test_a_name_that_cannot_be_is_told_with_how_to_write_one(name: str, user: Terminal) -> None:
    assert user.refused("network", "create", name, "--region", "sim-north") == (
        f"NAME {name!r} is not valid: use 1 to 63 letters, digits, '_', '.' and '-', beginning and ending with a "
        "letter or digit."
    )


def test_what_is_wrong_is_told_with_its_option(user: Terminal) -> None:
    asked = ("network", "create", "wordy", "--region", "sim-north")
    long = "x" * 4097
    assert user.refused(*asked, "--description", long) == "--description must have at most 4096 characters."
    assert user.refused(*asked, "--tag", f"{long}=1") == "The name of a --tag must have at most 255 characters."
    tags = [word for number in range(257) for word in ("--tag", f"t{number}=1")]
    assert user.refused(*asked, *tags) == "--tag must have at most 256 items."
    said = user.refused(*asked, "--description", long, "--tag", f"a={long}")
    assert set(said.rstrip(".").split("; ")) == {
        "--description must have at most 4096 characters",
        "The value of a --tag must have at most 1024 characters",
    }


def test_security_groups(user: Terminal) -> None:
    user("network", "create", "walls", "--region", "sim-north", "--wait")
    made = user(
        *("security-group", "create", "ssh", "--network", "walls", "--wait"),
        *("--allow", "ingress tcp 22 0.0.0.0/0", "--allow", "egress any"),
    )
    assert "Allows      ingress tcp 22 0.0.0.0/0; egress any\n" in made
    changed = user("security-group", "update", "ssh", "--allow", "ingress udp 1-5", "--remove-rule", "egress any")
    assert "Allows      ingress tcp 22 0.0.0.0/0; ingress udp 1-5\n" in changed
    said = user.refused("security-group", "update", "ssh", "--remove-rule", "egress any")
    assert said.startswith(
        "--remove-rule 'egress any' is not a rule of this group: the rules are ingress tcp 22 0.0.0.0/0; "
    )
    assert user("security-group", "list", "--network", "walls", "-o", "name") == "ssh\n"
    assert user.json("security-group", "show", "ssh")["spec"]["rules"][1] == {
        "direction": "ingress",
        "protocol": "udp",
        "port": 1,
        "portMax": 5,
    }
    assert user.refused("security-group", "create", "x", "--network", "walls", "--allow", "in tcp").startswith(
        "--allow 'in tcp' does not begin with ingress or egress: "
    )
    assert user("security-group", "delete", "ssh", "--yes", "--wait") == "The security group ssh was deleted.\n"


def test_a_security_group_that_instances_have_is_taken_from_them_first(user: Terminal) -> None:
    user("network", "create", "held-net", "--region", "sim-north", "--wait")
    user("security-group", "create", "held", "--network", "held-net", "--wait")
    chosen = ("--network", "held-net", "--flavor", SMALL, "--image", JAMMY, "--wait")
    names = [f"holder-{number}" for number in range(7)]
    for name in names[1:]:
        user("instance", "create", name, *chosen, "--security-group", "held")
    user("instance", "create", names[0], *chosen)
    remedy = (
        "remove it with remuda instance update INSTANCE --no-security-group, or name the groups to keep "
        "with --security-group."
    )
    shown = ", ".join(names[1:6])
    assert user.refused("security-group", "delete", "held", "--yes") == (
        f"Security group is in use by 6 instances ({shown} and 1 more) and cannot be deleted: {remedy}"
    )
    for name in names[2:]:
        user("instance", "delete", name, "--yes", "--wait")
    assert user.refused("security-group", "delete", "held", "--yes") == (
        f"Security group is in use by the instance holder-1 and cannot be deleted: {remedy}"
    )
    user("instance", "update", "holder-1", "--no-security-group", "--yes", "--wait")
    assert user("security-group", "delete", "held", "--yes", "--wait") == "The security group held was deleted.\n"


def test_ssh_authorities(user: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "ca.pub"
    file.write_text(f"{KEY}\n")
    assert "ssh-ed25519" in user("ssh-ca", "create", "ours", "--key", str(file))
    assert "ours" in user("ssh-ca", "list", "-o", "name").split()
    assert user.json("ssh-ca", "show", "ours")["spec"]["publicKey"].startswith("ssh-ed25519 AAAA")
    user("network", "create", "ca-net", "--region", "sim-north", "--wait")
    chosen = ("--network", "ca-net", "--flavor", SMALL, "--image", JAMMY, "--ssh-ca", "ours", "--wait")
    assert "SSH CA      ours\n" in user("instance", "create", "opened", *chosen)
    said = user.refused("ssh-ca", "delete", "ours", "--yes")
    assert said == (
        "SSH certificate authority is in use by the instance opened and cannot be deleted: remove it with remuda "
        "instance update INSTANCE --ssh-ca ''."
    )
    user("instance", "update", "opened", "--ssh-ca", "", "--yes", "--wait")
    assert "SSH CA" not in user("instance", "show", "opened")
    assert user("ssh-ca", "delete", "ours", "--yes").startswith("The SSH certificate authority ours ")
    file.write_bytes(b"\xff\xfe")
    assert (
        user.refused("ssh-ca", "create", "x", "--key", str(file))
        == f"--key {file} is not a text file: name the right file."
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "is a private key"),
        (f"{KEY}\n{KEY}\n", "is not a public key"),
        ("cert-authority " + KEY, "is not a public key"),
        ("hunter2 is my password", "is not a public key"),
        ("", "is not a public key"),
    ],
)
def test_what_is_no_public_key_does_not_leave_the_machine(
    text: str, what: str, terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "ca"
    file.write_text(text)
    said = terminal.refused("ssh-ca", "create", "ca2", "--key", str(file))
    assert said == f"--key {file} {what} and was not sent: name the .pub file."


def test_what_regions_offer(user: Terminal) -> None:
    assert user("region", "list").splitlines()[0].split() == ["NAME", "TYPE", "ID"]
    assert "load_balancers" in user("region", "show", "sim-south")
    both, one = user("flavor", "list"), user("flavor", "list", "--region", "sim-north")
    assert len(both.splitlines()) > len(one.splitlines())
    assert "sim-south" not in one
    assert user("flavor", "show", SMALL, "--region", "sim-north").splitlines()[:3] == [
        "Name          sim-small-1",
        "Region        sim-north",
        "CPUs          1",
    ]
    said = user.refused("flavor", "show", SMALL)
    assert said == "The flavor sim-small-1 exists in sim-north and sim-south: choose one with --region."
    assert user.refused("flavor", "show", "huge").startswith("The flavor huge does not exist: choose from ")
    assert JAMMY in user("image", "list", "-o", "name").split()
    image = user.json("image", "show", JAMMY, "--region", "sim-north")
    assert user("image", "show", image["metadata"]["id"], "--region", "sim-north", "-o", "name") == f"{JAMMY}\n"


def test_an_image_that_cannot_be_fetched_is_one_sentence(user: Terminal) -> None:
    chosen = ("--region", "sim-north", "--distro", "ubuntu", "--release", "24.04")
    said = user.refused("image", "import", "mine", *chosen, "--url", "http://127.0.0.1:9/disk.raw")
    assert said == "Image read failed, please ensure the URL is correct."
    assert user.refused("image", "delete", "mine", "--yes").startswith("The image mine does not exist: ")


def image(state: str) -> dict[str, Any]:
    system = {"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04"}
    spec = {"architecture": "x86_64", "sizeGiB": 20, "virtualization": "any", "os": system}
    return {
        "metadata": {"id": "image-1", "name": "mine", "creationTime": MADE},
        "spec": spec,
        "status": {"state": state},
    }


@pytest.mark.parametrize(("last", "code"), [("ready", 0), ("failed", 1)])
def test_an_image_is_asked_for_and_waited_for(last: str, code: int, terminal: Terminal) -> None:
    region = {"metadata": {"id": "r-1", "name": "moon"}, "spec": {}}
    answers = [told([region]), told([]), told(image("pending")), told([image("creating")]), told([image(last)])]
    with Server(*answers).running() as server:
        here = NamedId(id="o-1", name="acme")
        context = LoginContext(
            endpoints={"region": server.url}, tokens=LoginTokens(access=Secret("x")), organization=here
        )
        ContextsFile(terminal.file).update(lambda _: LoginContexts(current="a", contexts={"a": context}))
        words = ("image", "import", "mine", "--region", "moon", "--url", "https://there/disk", "--distro", "ubuntu")
        got, shown, said = terminal.typed(*words, "--release", "24.04", "--tag", "a=b", "--wait")
    assert (got, said.splitlines()[0]) == (code, "mine is creating")
    assert server.asked[2][:2] == ("POST", "/api/v1/organizations/o-1/regions/r-1/images")
    assert json.loads(server.bodies[2]) == {
        "metadata": {"name": "mine", "tags": [{"name": "a", "value": "b"}]},
        "spec": {
            "uri": "https://there/disk",
            "architecture": "x86_64",
            "virtualization": "any",
            "os": {"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04"},
        },
    }
    if code:
        assert said.splitlines()[1] == "mine is failed: delete it, and try again."
    else:
        assert "ready" in shown.splitlines()[1]
