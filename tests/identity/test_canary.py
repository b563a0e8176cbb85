"""No secret of identity gets anywhere but into the one answer that must show it.

Not into a byte of the database or its log of writes, not into a line that is logged, not into an audit or idempotency
record, not into an error, an event or anybody else's answer, not into the metrics.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from remuda.identity.kinds.tokens import SigningKey
from tests.kit.asgi.client import Client
from tests.kit.identity.canaries import Canaries, Heard, looking_out
from tests.kit.identity.canary_scenario import WATCHED, Scene
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.identity.launch import running


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[Canaries]:
    yield from looking_out(capfd, caplog)


async def test_no_secret_is_anywhere_but_in_the_answer_that_must_show_it(tmp_path: Path, printed: Canaries) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.mkdir()
    async with running(data) as identity:
        scene = Scene(identity, Heard(identity.asgi), printed)
        await scene.bootstrap(outside)
        async with scene.watching(*WATCHED):
            client = await scene.accounts_and_clients()
            browser = await scene.log_in(client)
            await scene.connect_device(browser, client)
            await scene.choose_password()
            await scene.break_glass()
            await scene.be_a_service()
            await scene.send_nonsense()
            await scene.read_all()
        for key in (await identity.store.list(SigningKey)).items:
            for private in key.spec.private_keys:
                printed.add("".join(private.pem.reveal().splitlines()[1:-1]))
        printed.add(identity.root)
        printed.assert_unstored(data, at_least={"identity.db", "identity.db-wal"})
        printed.assert_heard(scene.heard)
        events = [told for _, told in scene.heard.answers if b"event: bookmark" in told]
        assert len(events) == len(WATCHED) + 1
        printed.assert_unseen("the access log", b"\n".join(identity.lines.lines))
        for registry in (identity.metrics.registry, identity.app.ports.metrics):
            printed.assert_unseen("the metrics", generate_latest(registry))
        assert len(identity.lines.lines) > 50
    printed.assert_unstored(data, at_least={"identity.db"})


async def test_the_search_would_find_a_secret_that_got_out(tmp_path: Path) -> None:
    async with running(tmp_path) as identity:
        found = Canaries()
        found.add("acme-corporation")
        heard = Heard(identity.asgi)
        body = {"metadata": {"name": "acme-corporation"}, "spec": {"organizationType": "adhoc"}}
        expect(await Client(app=heard, token=identity.root).post(ORGANIZATIONS, body), 202)
        with pytest.raises(AssertionError, match=r"a secret of .* is in identity"):
            found.assert_unstored(tmp_path, at_least={"identity.db"})
        with pytest.raises(AssertionError, match="is told by"):
            found.assert_heard(heard)
