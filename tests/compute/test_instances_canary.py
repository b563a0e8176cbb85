"""No secret of compute gets anywhere but into the one answer that must show it.

Not into a byte of the database or its log of writes, not into a line that is logged, not into an audit, idempotency or
operation record, not into an error or anybody else's answer, not into the metrics.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from remuda.compute.app import TABLE
from remuda.http.server.access_log import AccessLog
from remuda.http.server.metrics import Metrics
from tests.kit.asgi.client import Client
from tests.kit.compute.apart import EITHER_WAY, Begun, databases
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, GPUS, at, encoded
from tests.kit.http_server import Lines
from tests.kit.identity.canaries import Canaries, Heard, looking_out
from tests.kit.identity.environment import expect
from tests.kit.region.environment import STANDARD

FIRST, SECOND, THIRD = (f"password-canary-{number}-5d4c3b2a" for number in range(3))


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[Canaries]:
    """Collect the secrets of a test, and look for them in all that was printed or logged."""
    yield from looking_out(capfd, caplog)


class Scene:
    """Compute with an ear to everything it says, and an eye on what is logged of requests."""

    def __init__(self, compute: ComputeEnvironment, canaries: Canaries) -> None:
        self.compute, self.canaries = compute, canaries
        self.lines, self.metrics = Lines(), Metrics(CollectorRegistry(), [TABLE])
        ports = compute.app.ports
        observed = AccessLog(
            compute.asgi, clock=ports.clock, randomness=ports.randomness, metrics=self.metrics, sink=self.lines
        )
        self.heard = Heard(observed)
        self.root = Client(app=self.heard, token=compute.region.identity.root)

    async def make(self, network: str) -> str:
        """Make an instance with a password in its user data, twice under one key, and look at it."""
        wanted = self.compute.wanted(network, "canary", imageId=DEBIAN, userData=_user_data(FIRST))
        made = expect(await self.root.post(INSTANCES, wanted, idempotency_key="once"), 201)["metadata"]["id"]
        expect(await self.root.post(INSTANCES, wanted, idempotency_key="once"), 201)
        expect(await self.root.post(INSTANCES, wanted, idempotency_key="another"), 409)
        await self.compute.until(made, "provisioned")
        expect(await self.root.get(at(made)), 200)
        expect(await self.root.get(INSTANCES), 200)
        self.canaries.add(FIRST, f"POST {INSTANCES}", f"GET {at(made)}", f"GET {INSTANCES}")
        return str(made)

    async def change(self, instance: str) -> None:
        """Change its user data, alone and together with what it costs."""
        for secret, flavor in ((SECOND, STANDARD), (THIRD, GPUS)):
            spec = {"flavorId": flavor, "imageId": DEBIAN, "userData": _user_data(secret)}
            body = {"metadata": {"name": "canary"}, "spec": spec}
            expect(await self.root.put(at(instance), body, idempotency_key=flavor), 202)
            self.canaries.add(secret, f"PUT {at(instance)}")
            await self.compute.until(instance, "provisioned")

    async def use(self, instance: str) -> None:
        """Have everything that an instance shows of itself."""
        key = expect(await self.root.get(at(instance, "sshkey")), 200)["privateKey"]
        for line in key.splitlines()[1:-1]:
            if len(line) > 32:
                self.canaries.add(line, f"GET {at(instance, 'sshkey')}")
        url = expect(await self.root.get(at(instance, "consolesession")), 200)["url"]
        self.canaries.add(url, f"GET {at(instance, 'consolesession')}")
        expect(await self.root.get(at(instance, "consoleoutput")), 200)

    async def send_nonsense(self, network: str, instance: str) -> None:
        """Send what looks like a secret wherever there could be one, so that every rejection can repeat it."""
        wrong = self.canaries.add("nonsense-canary-9f8e7d6c")
        for data in (wrong, encoded(wrong), encoded(f"#cloud-config\n{wrong}\n" * 8000), [wrong], {wrong: wrong}):
            body: Any = self.compute.wanted(network, "canary", imageId=DEBIAN, userData=data)
            for reply in (await self.root.post(INSTANCES, body), await self.root.put(at(instance), body)):
                assert reply.status in {400, 413, 422}
        assert (await self.root.post(INSTANCES, f'{{"spec": "{wrong}'.encode())).status == 400


def _user_data(password: str) -> str:
    return encoded(f"#cloud-config\npassword: {password}\nchpasswd: {{expire: false}}\n")


def _assert_unstored(canaries: Canaries, directory: Path) -> None:
    files = databases(directory)
    assert files
    for path in files:
        canaries.assert_unseen(path.name, path.read_bytes())


@EITHER_WAY
async def test_no_secret_is_anywhere_but_in_the_answer_that_must_show_it(
    tmp_path: Path, printed: Canaries, begun: Begun
) -> None:
    async with begun(tmp_path) as compute:
        scene = Scene(compute, printed)
        network = await compute.region.network()
        instance = await scene.make(network)
        await scene.change(instance)
        await scene.use(instance)
        await scene.send_nonsense(network, instance)
        _assert_unstored(printed, tmp_path)
        printed.assert_heard(scene.heard)
        printed.assert_unseen("the access log", b"\n".join(scene.lines.lines))
        for registry in (scene.metrics.registry, compute.app.ports.metrics):
            printed.assert_unseen("the metrics", generate_latest(registry))
        assert len(scene.lines.lines) > 15
    _assert_unstored(printed, tmp_path)


@EITHER_WAY
async def test_the_search_would_find_a_secret_that_got_out(tmp_path: Path, begun: Begun) -> None:
    async with begun(tmp_path) as compute:
        found = Canaries()
        found.add("a-name-that-is-no-secret")
        scene = Scene(compute, found)
        await compute.instance(await compute.region.network(), "a-name-that-is-no-secret", imageId=DEBIAN)
        expect(await scene.root.get(INSTANCES), 200)
        with pytest.raises(AssertionError, match=r"a secret of .* is in (remuda|compute)"):
            _assert_unstored(found, tmp_path)
        with pytest.raises(AssertionError, match="is told by"):
            found.assert_heard(scene.heard)
