"""Region in a real process: what scripts find, what outlives what, and what an operator does to a simulated cloud."""

import base64
import json
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2

from tests.kit.processes.program import Running, refused, remuda, running
from tests.kit.processes.terminal import Cloud

INSTANT = {"REMUDA_REGION__INSTANT": "true"}
TIMEOUT_S = 120.0
IDS = ("regionId", "flavorId", "imageId")
HEADINGS = ["CLOUD", "SERVER", "HOSTNAME", "STATE", "HOST", "FAULT"]
KUBECONFIG = """
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: secret}}]
"""
CONFIGURED = """
[region]
private = { sim-north = ["d4a0d1a2-6a5f-4d0c-9d43-0b3f6f2f6f11"] }
kubernetes = { garden = { kube_config_file = "garden" } }
"""


class Client:
    """Asks region for whoever has a token."""

    def __init__(self, credentials: Mapping[str, Any], token: str) -> None:
        self.credentials, self._token = credentials, token

    def ask(self, path: str, method: str = "GET", **options: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx2.request(method, self.credentials["endpoints"]["region"] + path, headers=headers, **options)

    def made(self, path: str, name: str, spec: dict[str, Any]) -> str:
        answer = self.ask(path, "POST", json={"metadata": {"name": name}, "spec": spec})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["metadata"]["id"])

    def network(self, name: str = "pad") -> str:
        found = self.credentials
        spec = {"prefix": "10.0.0.0/24", "dnsNameservers": []}
        places = {each: found[each] for each in ("organizationId", "projectId", "regionId")}
        return self.made("/api/v2/networks", name, {**spec, **places})

    def server(self, network: str, **more: Any) -> str:
        spec = {"networkId": network, "flavorId": self.credentials["flavorId"], "imageId": self.credentials["imageId"]}
        return self.made("/api/v2/servers", "web", {**spec, **more})

    def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + TIMEOUT_S
        while not holds(read := self.ask(path).json()):
            assert time.monotonic() < deadline, read
            time.sleep(0.05)
        return read

    def until_running(self, server: str) -> Any:
        return self.until(f"/api/v2/servers/{server}", lambda read: _power(read) == "Running")


def administrator(one: Running) -> Client:
    """Return the client of the platform's administrator."""
    told = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(one.data))
    return Client(one.credentials, told.stdout.strip())


def _power(read: Any) -> str | None:
    return read.get("status", {}).get("powerState") if isinstance(read, dict) else None


def listed(data: Path) -> list[list[str]]:
    told = remuda("sim", "list", "--data", str(data))
    assert (told.returncode, told.stderr) == (0, "")
    return [line.split() for line in told.stdout.splitlines()]


def test_what_the_file_for_scripts_names_is_a_example_instance_that_boots(tmp_path: Path) -> None:
    with running(tmp_path, environment=INSTANT) as one:
        admin = administrator(one)
        assert one.credentials["endpoints"]["region"] == f"{one.url}/region"
        region, flavor, image = (one.credentials[name] for name in IDS)
        (found,) = [each for each in admin.ask("/api/v2/regions").json() if each["metadata"]["id"] == region]
        assert found["metadata"]["name"] == "sim-north"
        flavors = admin.ask(f"/api/v2/regions/{region}/flavors").json()
        assert flavors[0]["metadata"]["id"] == flavor, "the smallest"
        data = base64.b64encode(b"#cloud-config\npackages: [nginx]\n").decode()
        server = admin.server(admin.network(), userData=data)
        assert admin.until_running(server)["spec"]["imageId"] == image
        console = admin.ask(f"/api/v2/servers/{server}/consoleoutput").json()["contents"]
        assert "Installing 1 packages: nginx" in console
        address = admin.ask(f"/api/v2/servers/{server}/consolesessions").json()["url"]
        assert address.startswith(f"{one.url}/simulated/consoles/sim-north/")
        screen = httpx2.get(address)
        assert (screen.status_code, "Installing 1 packages: nginx" in screen.text) == (200, True)
        assert httpx2.get(address[:-1]).status_code == 404
        code, log = one.stop()
        assert code == 0
        assert address.rpartition("=")[2] not in log


def test_users_see_the_regions_and_make_networks_with_the_token_of_the_file(remuda_up: Cloud) -> None:
    one = remuda_up.running
    user = Client(one.credentials, one.credentials["token"])
    assert {each["metadata"]["name"] for each in user.ask("/api/v2/regions").json()} == {"sim-north", "sim-south"}
    network = user.network("seen-by-all")
    user.until(f"/api/v2/networks/{network}", lambda read: read["metadata"]["provisioningStatus"] == "provisioned")


def test_the_pages_and_meters_of_the_process_know_region(remuda_up: Cloud) -> None:
    one = remuda_up.running
    front = httpx2.get(one.url).text
    assert 'href="/region/docs"' in front
    assert httpx2.get(f"{one.url}/region/docs").status_code == 200
    deadline = time.monotonic() + TIMEOUT_S
    while httpx2.get(f"{one.url}/readyz").status_code != 200:
        assert time.monotonic() < deadline
    meters = one.metrics().text
    for series in ('remuda_operations_open{phase="running",saga="network.create"}', 'service="region"'):
        assert series in meters
    assert meters.count("# TYPE remuda_operations_closed_total") == 1


def test_a_server_that_was_booting_when_the_process_was_killed_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        admin = administrator(one)
        server = admin.server(admin.network())
        admin.until(f"/api/v2/servers/{server}", lambda read: _power(read) not in {None, "Pending"})
        one.stop(signal.SIGKILL)
    with running(tmp_path) as one:
        read = administrator(one).until_running(server)
        assert read["status"]["privateIP"].startswith("10.0.0.")
        assert [row[1:4] for row in listed(tmp_path)[1:]] == [[server, "web", "running"]]
        assert one.stop(signal.SIGINT)[0] == 0


def test_the_clouds_outlive_the_store(tmp_path: Path) -> None:
    with running(tmp_path, environment=INSTANT) as one:
        admin = administrator(one)
        server = admin.server(admin.network())
        admin.until_running(server)
        one.stop()
    for path in tmp_path.glob("remuda.db*"):
        path.unlink()
    with running(tmp_path, environment=INSTANT) as one:
        assert one.said.startswith("This is the first start.")
        assert administrator(one).ask("/api/v2/servers").json() == []
        assert [row[1] for row in listed(tmp_path)[1:]] == [server]
        one.stop()


def test_a_file_of_before_region_gets_what_it_lacks_and_keeps_its_token(stopped: Path) -> None:
    file = stopped / "credentials.json"
    full = json.loads(file.read_text())
    old = {name: value for name, value in full.items() if name not in IDS}
    file.write_text(json.dumps(old | {"endpoints": {"identity": full["endpoints"]["identity"]}}))
    where = full["endpoints"]["identity"].removesuffix("/identity").removeprefix("http://")
    with running(stopped, listen=where) as one:
        assert one.credentials == full
        assert file.stat().st_mode & 0o777 == 0o600
        one.stop()


def test_without_a_simulated_cloud_the_file_names_no_server(tmp_path: Path) -> None:
    with running(tmp_path, environment={"REMUDA_REGION__SIMULATED": "false"}) as one:
        assert not set(IDS) & set(one.credentials)
        assert administrator(one).ask("/api/v2/regions").json() == []
        assert not (tmp_path / "clouds").exists()


def test_a_cluster_that_does_not_answer_is_a_region_all_the_same_and_a_private_one_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "garden").write_text(KUBECONFIG)
    (tmp_path / "remuda.toml").write_text(CONFIGURED)
    with running(tmp_path) as one:
        admin = administrator(one)
        user = Client(one.credentials, one.credentials["token"])
        regions = {each["metadata"]["name"]: each for each in user.ask("/api/v2/regions").json()}
        assert set(regions) == {"sim-south", "garden"}
        garden = regions["garden"]
        assert (garden["spec"]["type"], garden["spec"]["features"]["capabilities"]) == ("kubernetes", ["catalogue"])
        refused = admin.ask(f"/api/v2/regions/{garden['metadata']['id']}/flavors")
        assert (refused.status_code, "127.0.0.1" in refused.text) == (503, False)
        assert one.stop()[0] == 0


def test_a_cloud_whose_file_is_damaged_is_one_sentence_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "clouds").mkdir()
    (tmp_path / "clouds" / "sim-north.db").write_bytes(b"a diary, or something" * 100)
    assert f"The file {tmp_path}/clouds/sim-north.db was not written by Remuda" in refused(tmp_path)
    assert not (tmp_path / "credentials.json").exists()


def test_what_an_operator_does_in_the_cloud_is_seen(tmp_path: Path) -> None:
    with running(tmp_path, environment=INSTANT) as one:
        admin = administrator(one)
        server = admin.server(admin.network())
        admin.until_running(server)
        path = f"/api/v2/servers/{server}"
        headings, row = listed(tmp_path)
        assert (headings, row[:4]) == (HEADINGS, ["sim-north", server, "web", "running"])

        def told(*words: str) -> str:
            result = remuda("sim", *words, "--data", str(tmp_path))
            assert (result.returncode, result.stderr) == (0, "")
            return result.stdout

        assert told("migrate", server) == f"The server {server} of sim-north was moved to another host.\n"
        assert listed(tmp_path)[1][4] != row[4]
        assert told("stop", "web") == "The server web of sim-north was stopped.\n"
        admin.until(path, lambda read: _power(read) == "Stopped")
        assert told("fail", "web", "--reason", "lightning", "--cloud", "sim-north").endswith("has failed.\n")
        admin.until(path, lambda read: read["metadata"]["healthStatus"] == "error")
        assert listed(tmp_path)[1][-1] == "lightning"
        assert told("vanish", server).endswith("was removed.\n")
        assert one.stop()[0] == 0


def test_what_is_not_in_the_cloud_is_one_sentence(stopped: Path) -> None:
    for words, told in (
        (["stop", "nobody"], "The server nobody does not exist in sim-north or sim-south: "),
        (["list", "--cloud", "nowhere"], "--cloud nowhere does not exist: use one of sim-north, sim-"),
    ):
        result = remuda("sim", *words, "--data", str(stopped))
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert result.stderr.startswith(told)


def test_a_directory_without_clouds_is_one_sentence(tmp_path: Path) -> None:
    result = remuda("sim", "list", "--data", str(tmp_path))
    told = f"--data {tmp_path} has no simulated cloud: name the data directory of remuda up.\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", told)
