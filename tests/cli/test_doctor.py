"""`remuda doctor`: what it finds in a directory that is well, and in one that is not."""

import asyncio
import json
import socket
from collections.abc import AsyncIterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from remuda.app import registry
from remuda.cli import main
from remuda.cli.commands.config import load_configuration
from remuda.cli.commands.doctor import run_checks
from remuda.cli.findings import Finding
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.operations.kinds import Operation, OperationSpec
from remuda.providers.contract.common import Handle
from remuda.reconcile.kinds import DeletionGuardRecord, DeletionGuardSpec
from remuda.region.kinds.orphans import new_orphan
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.processes.program import remuda, running

Said = pytest.CaptureFixture[str]
NORTH = "b7a8f1de-0c6e-4c0a-9a7e-2f1c9f6f0001"
NOW = datetime(2026, 3, 4, tzinfo=UTC)


def looked(said: Said, data: Path, *more: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Return the exit code, and the findings by their checks."""
    code = main(["doctor", "-o", "json", "--data", str(data), "--listen", "127.0.0.1:0", *more])
    told: Any = json.loads(said.readouterr().out)
    return code, {each["check"]: each for each in told["findings"]}


def statuses(found: dict[str, dict[str, str]]) -> dict[str, str]:
    return {check: each["status"] for check, each in found.items() if each["status"] != "ok"}


def with_store(data: Path, change: Any) -> None:
    """Change something in a store that nobody has open."""

    async def run() -> None:
        directory = DataDirectory(data)
        store = open_store(directory.store, registry(), directory.sealer())
        try:
            await change(store)
        finally:
            await store.close()

    asyncio.run(run())


def test_beside_a_process_it_looks_at_that_one_too(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        told = remuda("doctor", "--data", str(tmp_path))
    assert (told.returncode, told.stderr) == (0, "")
    assert f"A process is running at {one.url} and is ready." in told.stdout
    assert told.stdout.endswith("\nAll checks passed.\n")


def test_in_a_directory_that_is_well_everything_is_ok_and_stays_as_it_is(left: Path, capsys: Said) -> None:
    before = {path.name: path.read_bytes() for path in left.glob("*.json")}
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (0, {})
    assert list(found) == [
        *("release", "directory", "disk", "keys", "process"),
        *("store", "clock", "operations", "orphans", "deletions"),
    ]
    assert {path.name: path.read_bytes() for path in left.glob("*.json")} == before


def test_where_nothing_is_yet_it_says_that_a_start_makes_it(tmp_path: Path, capsys: Said) -> None:
    code, found = looked(capsys, tmp_path / "data")
    assert (code, statuses(found)) == (0, {"directory": "warning"})
    assert not (tmp_path / "data").exists()
    code, found = looked(capsys, tmp_path)
    assert (code, statuses(found)) == (0, {"keys": "warning", "store": "warning"} | _open_to_others(tmp_path))


def _open_to_others(path: Path) -> dict[str, str]:
    return {"directory": "warning"} if path.stat().st_mode & 0o077 else {}


def test_a_store_without_its_keys_is_critical(left: Path, capsys: Said) -> None:
    (left / "keys.json").chmod(0o644)
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (1, {"keys": "critical"})
    assert f"run chmod 600 {left}/keys.json" in found["keys"]["message"]
    (left / "keys.json").unlink()
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (1, {"keys": "critical"})
    assert "the secrets in the store are lost" in found["keys"]["remedy"]


def test_a_damaged_store_is_critical(left: Path, capsys: Said) -> None:
    with_store(left, _nothing)  # it moves the log into the file
    store = left / "remuda.db"
    content = bytearray(store.read_bytes())
    content[8192 * 3 : 8192 * 5] = b"\xff" * (8192 * 2)
    store.write_bytes(content)
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (1, {"store": "critical"})
    store.write_text("hello " * 4000)
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (1, {"store": "critical"})


def test_what_damage_there_is_is_told_on_one_line(stopped: Path, capsys: Said) -> None:
    store = stopped / "remuda.db"
    with closing(apsw.Connection(str(store))) as connection:
        ((page,),) = connection.execute("SELECT min(pageno) FROM dbstat WHERE name = 'horizon'")
    content = bytearray(store.read_bytes())
    header = 8192 * (page - 1) + 8
    content[header : 8192 * page] = (b"\xff" * 2).ljust(8192 - 8, b"\x00")  # where its only row is, and nothing else
    store.write_bytes(content)
    code, found = looked(capsys, stopped)
    assert (code, statuses(found)) == (1, {"store": "critical"})
    assert "\n" not in found["store"]["message"]
    assert "***" not in found["store"]["message"]
    assert f"page {page} cell 0: " in found["store"]["message"]


def test_a_store_without_its_tables_is_critical_and_nothing_else(stopped: Path, capsys: Said) -> None:
    store = stopped / "remuda.db"
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("DROP TABLE logs")
    assert told_of_store(capsys, stopped) == [("critical", f"{store} is damaged: it has no table logs.")]
    store.write_bytes(b"")
    said = (
        f"The store {store} is empty although it was in use: "
        "restore it from a backup, or remove it to start with an empty one."
    )
    assert told_of_store(capsys, stopped) == [("critical", said)]
    (stopped / "credentials.json").unlink()
    (stopped / "remuda.db.lock").write_text("open\n")
    assert told_of_store(capsys, stopped) == [("warning", f"{store} is empty: a first start was interrupted.")]


def told_of_store(said: Said, data: Path) -> list[tuple[str, str]]:
    main(["doctor", "-o", "json", "--data", str(data), "--listen", "127.0.0.1:0"])
    found = json.loads(said.readouterr().out)["findings"]
    return [(each["status"], each["message"]) for each in found if each["check"] == "store"]


async def _nothing(_: SqliteStore) -> None: ...


def test_what_waits_for_an_operator_is_named(left: Path, capsys: Said) -> None:
    async def change(store: SqliteStore) -> None:
        spec = OperationSpec(
            saga="network.create",
            subject_kind="networks",
            subject="n",
            actor="a",
            input="{}",
            deadline=NOW,
            process="p",
        )
        for name in ("op-1", "op-2"):
            made = await store.create(Operation(metadata=Metadata(name=name), spec=spec))
        await store.update_status(made.moved("stuck"))
        await store.create(new_orphan(NORTH, "server", Handle("tenancy", "rmd-1"), "ObjectUnknown", NOW))
        tripped = DeletionGuardSpec(controller="orphans", group="acme", tripped=NOW)
        await store.create(DeletionGuardRecord(metadata=Metadata(name="b"), spec=tripped))

    with_store(left, change)
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (1, {"operations": "critical", "orphans": "warning", "deletions": "critical"})
    assert "1 are stuck: network.create op-2." in found["operations"]["message"]
    assert "server rmd-1" in found["orphans"]["message"]
    assert "orphans acme" in found["deletions"]["message"]


@pytest.mark.parametrize(
    ("controllers", "services"),
    [
        (["orphans"], ["region"]),
        (["previous-servers"], ["compute"]),
        (["orphans", "compute-orphans"], ["compute", "region"]),
    ],
)
def test_what_has_stopped_is_released_where_it_has_stopped(
    left: Path, capsys: Said, controllers: list[str], services: list[str]
) -> None:
    async def change(store: SqliteStore) -> None:
        for controller in controllers:
            spec = DeletionGuardSpec(controller=controller, group="*", tripped=NOW)
            await store.create(DeletionGuardRecord(metadata=Metadata(name=controller), spec=spec))

    with_store(left, change)
    _, found = looked(capsys, left)
    release = " and ".join(f"POST /{service}/api/v2/recovery/deletions/resume" for service in services)
    assert release in found["deletions"]["remedy"]
    assert found["deletions"]["remedy"].count("POST") == len(services)


def test_an_operation_that_was_cut_off_is_no_reason_to_worry(left: Path, capsys: Said) -> None:
    async def change(store: SqliteStore) -> None:
        spec = OperationSpec(saga="s", subject_kind="k", subject="n", actor="a", input="{}", deadline=NOW, process="p")
        await store.create(Operation(metadata=Metadata(name="op-1"), spec=spec))

    with_store(left, change)
    code, found = looked(capsys, left)
    assert (code, statuses(found)) == (0, {})
    assert found["operations"]["message"] == "1 were interrupted: the next start rolls them back."


class LongAgo(SystemClock):
    """A clock that nobody has set."""

    def now(self) -> datetime:
        return datetime(2001, 1, 1, tzinfo=UTC)


def test_a_clock_behind_the_store_is_critical(left: Path) -> None:
    found = findings(run_checks(load_configuration(None, left, "127.0.0.1:0"), LongAgo()))
    assert found["clock"].status == "critical"
    assert found["clock"].message.startswith("It is 2001-01-01 00:00:00 UTC, but the last write was at 20")


async def _collected(found: AsyncIterable[Finding]) -> dict[str, Finding]:
    return {each.check: each async for each in found}


def findings(found: AsyncIterable[Finding]) -> dict[str, Finding]:
    return asyncio.run(_collected(found))


def test_an_address_that_something_else_has_is_a_warning(left: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = remuda("doctor", "--data", str(left), "--listen", address)
    assert told.returncode == 0
    assert f"No process is running, and none could start: The address {address} is taken" in told.stdout
    assert told.stdout.endswith("\nThe installation works, with 1 warning.\n")


def test_m27_administrators_who_need_no_second_factor_are_a_warning_where_other_machines_reach_the_process(
    left: Path, tmp_path: Path
) -> None:
    config = tmp_path / "remuda.toml"

    def found(url: str, policy: str) -> dict[str, Finding]:
        config.write_text(f'[server]\npublic_url = "{url}"\n[identity]\nplatform_second_factor = "{policy}"\n')
        return findings(run_checks(load_configuration(config, left, "127.0.0.1:0"), SystemClock()))

    advised = found("https://cloud.example.com", "optional")["administrators"]
    assert (advised.status, advised.remedy) == (
        "warning",
        "Set identity.platform_second_factor to password or always.",
    )
    assert "administrators" not in found("https://cloud.example.com", "password")
    assert "administrators" not in found("http://127.0.0.1:8080", "optional"), "nobody else can log in"
