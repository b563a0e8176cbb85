"""The commands of the how-to page, on a real OpenStack: what an operator copies works, and leaves nothing."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from tests.kit.processes.operator import ADMIN, issue
from tests.kit.processes.program import Running, running
from tests.kit.processes.terminal import Terminal
from tests.openstack.plane.api import Session
from tests.openstack.plane.configuration import POLICIES
from tests.openstack.plane.plane import Plane
from tests.openstack.regions import SETTINGS, removed_domain, unique_name

pytestmark = pytest.mark.openstack

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "openstack.md").read_text()
DOMAIN = "remuda-berlin"
"""Name of the domain on the page."""


def blocks(language: str) -> Sequence[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_policy_lines_are_those_of_the_suite() -> None:
    lines: dict[str, dict[str, str]] = {}
    (text,) = [each for each in blocks("yaml") if "policy.yaml" in each]
    for part in re.split(r"^# /etc/", text, flags=re.MULTILINE)[1:]:
        service, _, rules = part.partition("/policy.yaml\n")
        lines[service] = yaml.safe_load(rules)
    assert lines == {service: dict(rules) for service, rules in POLICIES.items()}


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", environment=SETTINGS) as one:
        yield one


@pytest.fixture
def terminal(
    process: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A terminal of a platform administrator."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    found = Terminal(tmp_path / "config", capsys)
    found("login", "--credentials", str(process.data / "credentials.json"))
    saved = json.loads(found.file.read_text())
    token = issue(process.data, *ADMIN, "--lifetime", "1h", environment=SETTINGS)
    saved["contexts"]["default"]["tokens"] = {"access": token}
    found.file.write_text(json.dumps(saved))
    return found


def test_m23_the_commands_of_the_page_add_change_and_remove_a_region(
    plane: Plane, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = unique_name()
    described = {"name": domain, "visibility": "public", "disk_format": "raw", "container_format": "bare"}
    status, image = Session.admin(plane.configuration).request("POST", "glance", "/v2/images", described)
    assert status == 201, image
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    environment = {
        **os.environ,
        "PATH": f"{plane.configuration.programs.venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "OS_CLIENT_CONFIG_FILE": str(plane.clouds_file),
        "OS_CLOUD": "admin",
        "IMAGE": image["id"],
    }
    try:
        for block in blocks("bash"):
            text = block.replace(DOMAIN, domain)
            if text.startswith("remuda "):
                terminal(*text.split()[1:])
                continue
            environment["PASSWORD"] = shell(text, environment)
            write_clouds(plane, tmp_path / "clouds.yaml", domain, environment["PASSWORD"])
        lacks = [line for line in terminal("region", "check", "berlin").splitlines() if "is missing" in line]
        assert lacks == [], "the account may do everything"
        assert terminal("region", "remove", "berlin", "--yes", "--wait") == "The region berlin was deleted.\n"
    finally:
        admin = Session.admin(plane.configuration)
        admin.request("DELETE", "glance", f"/v2/images/{image['id']}")
        removed_domain(plane, domain)


def shell(text: str, environment: dict[str, str]) -> str:
    """Run commands, and return the password that they leave in the environment."""
    command = ["bash", "-e", "-c", f"{text}\necho $PASSWORD"]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def write_clouds(plane: Plane, path: Path, domain: str, password: str) -> None:
    """Write the clouds.yaml of the page, with the address of the plane."""
    (text,) = [each for each in blocks("yaml") if each.startswith("clouds:")]
    found = yaml.safe_load(text.replace(DOMAIN, domain))
    del found["clouds"]["berlin"]["cacert"]  # the plane has no TLS
    found["clouds"]["berlin"]["auth"] |= {"auth_url": plane.configuration.auth_url, "password": password}
    path.write_text(yaml.safe_dump(found))
