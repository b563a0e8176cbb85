"""Images that are fetched from elsewhere, and how long somebody waits for one."""

from tests.kit.image_server import images
from tests.kit.processes.terminal import SMALL, Terminal

CHOSEN = ("--region", "sim-north", "--distro", "ubuntu", "--release", "24.04")


def test_an_image_is_imported_from_a_network_that_is_configured_and_can_be_used(user: Terminal) -> None:
    with images() as web:
        said = user("image", "import", "mine", *CHOSEN, "--url", f"{web}/disk.raw", "--wait", "--timeout", "1m")
    facts = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert (facts["Name"], facts["State"], facts["System"]) == ("mine", "ready", "ubuntu 24.04")
    assert "mine" in user("image", "list", "--region", "sim-north", "-o", "name").split()
    user("network", "create", "of-mine", "--region", "sim-north", "--wait")
    made = ("instance", "create", "of-mine", "--network", "of-mine", "--flavor", SMALL, "--image", "mine", "--wait")
    assert "Image       mine" in user(*made).splitlines()
    said = user.refused("image", "delete", "mine", "--yes")
    assert said.endswith(" is in use. Remove what uses it first."), "one remedy is enough"
    user("instance", "delete", "of-mine", "--yes", "--wait")
    assert user("image", "delete", "mine", "--yes") == "The image mine is being deleted.\n"


def test_an_image_that_everybody_has_is_not_ones_own_to_delete(user: Terminal) -> None:
    said = user.refused("image", "delete", "ubuntu-22.04-amd64", "--region", "sim-north")
    assert said == (
        "The image ubuntu-22.04-amd64 does not belong to the organization: ask the operator of the platform."
    )


def test_an_image_is_imported_from_no_other_address_of_the_machine(user: Terminal) -> None:
    with images() as web:
        elsewhere = web.replace("127.0.0.2", "127.0.0.1")
        said = user.refused("image", "import", "other", *CHOSEN, "--url", f"{elsewhere}/disk.raw")
    assert said == "Image read failed, please ensure the URL is correct."


def test_who_has_waited_long_enough_is_told_so_with_a_code_of_its_own(user: Terminal) -> None:
    with images() as web:
        asked = ("image", "import", "slow", *CHOSEN, "--url", f"{web}/slow.raw", "--wait", "--timeout", "1s")
        code, out, error = user.typed(*asked)
    assert (code, out) == (124, "")
    *progress, last = error.splitlines()
    assert set(progress) <= {"slow is pending", "slow is creating"}
    assert last.startswith("The operation is not complete after 1s and continues (slow is ")
    assert last.endswith(": remuda image show slow shows its status, or wait longer with --timeout.")
    user("image", "delete", "slow", "--yes")


def test_a_time_that_is_none_is_refused_before_anything_is_done(user: Terminal) -> None:
    asked = ("network", "create", "untimely", "--region", "sim-north")
    for words, said in (
        (("--timeout", "1m"), "--timeout has no effect without --wait: add --wait."),
        (("--wait", "--timeout", "soon"), "--timeout soon is not a duration: give one such as 30s, 5m or 1h30m."),
        (("--wait", "--timeout", "0s"), "--timeout 0s is not a duration: give one such as 30s, 5m or 1h30m."),
    ):
        assert user.refused(*asked, *words) == said
    assert "untimely" not in user("network", "list", "-o", "name").split()


def test_an_image_with_software_versions_is_usable_by_its_name(user: Terminal) -> None:
    user("network", "create", "nodes", "--region", "sim-north", "--wait")
    chosen = ("--network", "nodes", "--flavor", "sim-gpu-8", "--image", "ubuntu-24.04-amd64")
    user("instance", "create", "node", *chosen, "--wait")
    user("instance", "delete", "node", "--yes", "--wait")
