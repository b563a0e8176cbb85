"""No secret of region gets anywhere but into the one answer that must show it.

Not into a byte of the database or its log of writes, not into a line that is logged, not into an audit or idempotency
record, not into an error or anybody else's answer, not into the metrics. What only the cloud is to have (user data, the
content of an image) may be in the cloud's own storage; private keys may not be there either.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from remuda.http.server.access_log import AccessLog
from remuda.http.server.metrics import Metrics
from remuda.kernel.clock import SystemClock
from remuda.kernel.secrets import Secret
from remuda.region.app import TABLE
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.regions import RegionKubernetes, RegionSpec
from remuda.region.settings import ConfiguredRegion, RegionSettings
from tests.kit.asgi.client import Client
from tests.kit.http_server import Lines
from tests.kit.identity.canaries import Canaries, Heard, looking_out
from tests.kit.identity.environment import Carrying, expect
from tests.kit.identity.service_credentials import certified
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU, RegionEnvironment, configured, running
from tests.kit.region.images import Page, Web

SERVERS = "/api/v2/servers"
USER_DATA = "#cloud-config\npassword: {secret}\nchpasswd: {{expire: false}}\n"
URI = "https://images.example/disk.raw?X-Signature={secret}"
KUBECONFIG = "apiVersion: v1\nkind: Config\nusers: [{{name: us, user: {{token: {secret}}}}}]\n"
CLUSTER = region_id("cluster")


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[Canaries]:
    """Collect the secrets of a test, and look for them in all that was printed or logged."""
    yield from looking_out(capfd, caplog)


class Scene:
    """Region with an ear to everything it says, and an eye on what is logged of requests."""

    def __init__(self, region: RegionEnvironment, canaries: Canaries, web: Web) -> None:
        self.region, self.canaries, self.web = region, canaries, web
        self.lines, self.metrics = Lines(), Metrics(CollectorRegistry(), [TABLE])
        ports = region.app.ports
        observed = AccessLog(
            region.asgi, clock=ports.clock, randomness=ports.randomness, metrics=self.metrics, sink=self.lines
        )
        self.heard = Heard(observed)
        self.root = Client(app=self.heard, token=region.identity.root)

    def service(self, name: str) -> Client:
        """Return the client of a service."""
        headers = certified(name, {"actor": "ann@example.com", "type": "user"}, now=self.region.clock.now())
        return Client(app=Carrying(self.heard, headers))

    async def make_server(self) -> str:
        """Make a server with a password in its user data, twice under one key, and change that."""
        network = await self.region.network()
        spec = {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU}
        body = {"metadata": {"name": "canary"}, "spec": {**spec, "userData": self._user_data(1)}}
        made = expect(await self.root.post(SERVERS, body, idempotency_key="once"), 201)["metadata"]["id"]
        await self.root.post(SERVERS, body, idempotency_key="once")
        path = f"{SERVERS}/{made}"
        await self.region.until(path, "provisioned")
        expect(await self.root.get(path), 200)
        expect(await self.root.get(SERVERS), 200)
        for client, secret in ((self.root, 1), (self.service("unikorn-compute"), 1)):
            self.canaries.add(self._password(secret), f"POST {SERVERS}", f"GET {path}", f"GET {SERVERS}")
            expect(await client.get(path), 200)
        spec = {"flavorId": STANDARD, "imageId": UBUNTU, "userData": self._user_data(2)}
        expect(await self.root.put(path, {"metadata": {"name": "canary"}, "spec": spec}, idempotency_key="twice"), 202)
        self.canaries.add(self._password(2), f"PUT {path}")
        replaced = {"flavorId": STANDARD, "imageId": UBUNTU, "userData": self._user_data(3)}
        compute = self.service("unikorn-compute")
        expect(await compute.post(f"{path}/replace", replaced, idempotency_key="thrice"), 202)
        self.canaries.add(self._password(3), f"POST {path}/replace")
        return path

    async def use_server(self, path: str) -> None:
        """Have everything that a server shows of itself."""
        await self.region.until(path, "provisioned")
        key = expect(await self.root.get(f"{path}/sshkey"), 200)["privateKey"]
        for line in key.splitlines()[1:-1]:
            if len(line) > 32:
                self.canaries.add(line, f"GET {path}/sshkey")
        url = expect(await self.root.get(f"{path}/consolesessions"), 200)["url"]
        self.canaries.add(url, f"GET {path}/consolesessions")
        expect(await self.root.get(f"{path}/consoleoutput"), 200)

    async def import_images(self) -> None:
        """Import an image from a signed address, and fail to import two."""
        path = f"/api/v1/organizations/{self.region.organization}/regions/{NORTH}/images"
        for name, page in (("good", Page()), ("broken", Page(body=b"no disk")), ("missing", Page(status=403))):
            uri = URI.format(secret=self.canaries.add(f"signature-canary-{name}-1a2b3c"))
            self.web.serve(page, at=uri)
            system = {"kernel": "linux", "family": "debian", "distro": "debian", "version": "12"}
            spec = {"uri": uri, "architecture": "x86_64", "virtualization": "any", "os": system}
            body = {"metadata": {"name": name}, "spec": spec}
            expect(await self.root.post(path, body, idempotency_key=name), 200 if name == "good" else 422)
        expect(await self.root.get(path), 200)

    async def read_cluster(self) -> None:
        """Have a region's kubeconfig as the one service that may."""
        expect(await self.root.get("/api/v2/regions"), 200)
        path = f"/api/v1/organizations/{self.region.organization}/regions/{CLUSTER}/detail"
        expect(await self.root.get(path), 403)
        shown = expect(await self.service("unikorn-kubernetes").get(path), 200)["spec"]["kubernetes"]["kubeconfig"]
        self.canaries.add(shown, f"GET {path}")
        self.canaries.add(_token(), f"GET {path}")

    async def send_nonsense(self, path: str) -> None:
        """Send what looks like secrets wherever there could be one, so that every rejection could repeat it."""
        wrong = self.canaries.add("nonsense-canary-9f8e7d6c")
        base = {"flavorId": STANDARD, "imageId": UBUNTU}
        for data in (wrong, _encoded(wrong), _encoded(f"#cloud-config\n{wrong}\n" * 8000), [wrong], {wrong: wrong}):
            body: Any = {"metadata": {"name": "canary"}, "spec": {**base, "userData": data}}
            replaced = await self.service("unikorn-compute").post(f"{path}/replace", {**base, "userData": data})
            assert {(await self.root.put(path, body)).status, replaced.status} <= {400, 413, 422}
        images = f"/api/v1/organizations/{self.region.organization}/regions/{NORTH}/images"
        system = {"kernel": "linux", "family": "debian", "distro": "debian", "version": "12"}
        spec = {"architecture": "x86_64", "virtualization": "any", "os": system}
        for uri in (f"https://nowhere.example/?{wrong}", f"ftp://{wrong}", wrong, f"https://us:{wrong}@127.0.0.1/", 1):
            reply = await self.root.post(images, {"metadata": {"name": "image"}, "spec": {**spec, "uri": uri}})
            assert reply.status in {400, 422}, uri
        assert (await self.root.having(f"Bearer.{wrong}").get(SERVERS)).status == 401
        assert (await self.root.post(SERVERS, f'{{"spec": "{wrong}'.encode())).status == 400

    def _user_data(self, number: int) -> str:
        return _encoded(USER_DATA.format(secret=self._password(number)))

    def _password(self, number: int) -> str:
        return f"password-canary-{number}-5d4c3b2a"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _token() -> str:
    return "kubeconfig-canary-token-0a1b2c3d"


def _settings() -> RegionSettings:
    found = RegionKubernetes(kube_config=Secret(KUBECONFIG.format(secret=_token())), domain_name="cluster.example")
    cluster = ConfiguredRegion(name="cluster", spec=RegionSpec(provider="kubernetes", kubernetes=found))
    return RegionSettings(regions=(*configured(["sim-north", "sim-south"]), cluster))


async def test_no_secret_is_anywhere_but_in_the_answer_that_must_show_it(tmp_path: Path, printed: Canaries) -> None:
    ours, keys = tmp_path / "remuda.db", Canaries()
    web = Web(SystemClock())
    async with running(tmp_path, web=web, settings=_settings()) as region:
        scene = Scene(region, printed, web)
        path = await scene.make_server()
        await scene.use_server(path)
        await scene.import_images()
        await scene.read_cluster()
        await scene.send_nonsense(path)
        printed.add(region.identity.root)
        for line in (await scene.root.get(f"{path}/sshkey")).json["privateKey"].splitlines()[1:-1]:
            if len(line) > 32:
                keys.add(line)
        _assert_unstored(printed, ours)
        keys.assert_unstored(tmp_path, at_least={"remuda.db", "sim-north.db"})
        printed.assert_heard(scene.heard)
        printed.assert_unseen("the access log", b"\n".join(scene.lines.lines))
        for registry in (scene.metrics.registry, region.app.ports.metrics):
            printed.assert_unseen("the metrics", generate_latest(registry))
        assert len(scene.lines.lines) > 20
    _assert_unstored(printed, ours)
    keys.assert_unstored(tmp_path, at_least={"remuda.db", "sim-north.db"})


def _assert_unstored(canaries: Canaries, database: Path) -> None:
    files = [path for path in database.parent.iterdir() if path.name.startswith(database.name)]
    assert database in files
    for path in files:
        canaries.assert_unseen(path.name, path.read_bytes())


async def test_the_search_would_find_a_secret_that_got_out(tmp_path: Path) -> None:
    web = Web(SystemClock())
    async with running(tmp_path, web=web) as region:
        found = Canaries()
        found.add("a-name-that-is-no-secret")
        scene = Scene(region, found, web)
        await region.network("a-name-that-is-no-secret")
        expect(await scene.root.get("/api/v2/networks"), 200)
        with pytest.raises(AssertionError, match=r"a secret of .* is in remuda"):
            _assert_unstored(found, tmp_path / "remuda.db")
        with pytest.raises(AssertionError, match="is told by"):
            found.assert_heard(scene.heard)
