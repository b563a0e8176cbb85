"""`remuda audit`, against a real process: records as lines, and the verification of a file that it has written."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.auditfile.chain import Chain
from remuda.auditfile.file import AuditFile
from remuda.cli import main
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.store.logs import StreamEntry
from tests.kit.processes.terminal import Terminal


def exported(user: Terminal, *options: str) -> list[Any]:
    return [json.loads(line) for line in user("audit", "export", *options).splitlines()]


def test_m27_the_audit_of_an_organization_is_exported_as_lines_with_filters(user: Terminal) -> None:
    user("network", "create", "audited", "--region", "sim-north", "--wait")
    user("network", "delete", "audited", "--yes", "--wait")
    made, gone = (
        next(each for each in exported(user, "--resource", "networks") if each["operation"]["method"] == method)
        for method in ("POST", "DELETE")
    )
    assert made["resource"]["id"] == gone["resource"]["id"]
    assert exported(user, "--resource-id", made["resource"]["id"], "--status", "2xx") == [gone, made], "latest first"
    assert exported(user, "--resource-id", made["resource"]["id"], "--status", "404") == []
    assert exported(user, "--since", gone["time"], "--until", gone["time"], "--resource", "networks") == [gone]
    assert exported(user, "--actor", "nobody@example.com") == []
    assert user.refused("audit", "export", "--system").startswith(
        "The records that belong to no organization are for platform administrators: log in as one, or leave out"
    )
    assert "status" in user.refused("audit", "export", "--status", "many")


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    data = DataDirectory(tmp_path / "data")
    data.prepare(SystemRandomness())
    return data


def write(data: DataDirectory, path: Path, count: int) -> None:
    file = AuditFile(path, data.audit_head, Chain(data.sealer()))
    end = file.recover()
    now = SystemClock().now()
    entries = [
        StreamEntry(position=end.position + number, subject="system", time=now, data=msgspec.Raw(b"{}"))
        for number in range(1, count + 1)
    ]
    file.append(end, entries)


def test_a_file_is_verified_on_the_machine_and_the_bad_line_is_named(
    directory: DataDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rotated = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"

    def verified(*words: str) -> tuple[int, str]:
        code = main(["audit", "verify", *words, "--data", str(directory.path)])
        told = capsys.readouterr()
        return code, (told.out + told.err).strip()

    assert verified(str(path))[1].startswith(f"{directory.audit_head} does not exist: restore it")
    write(directory, path, 3)
    assert verified(str(path)) == (0, "Records 1 to 3 are intact.")
    path.rename(rotated)
    write(directory, path, 2)
    assert verified(str(rotated), str(path)) == (0, "Records 1 to 5 are intact.")
    assert verified(str(rotated), "--part") == (0, "Records 1 to 3 are intact.")
    missing = f"{path}:1: records 1 to 3 are missing before it. What comes before this line is intact."
    assert verified(str(path)) == (1, missing)
    assert verified(str(path), "--from", "4") == (0, "Records 4 to 5 are intact.")
    assert verified(str(path), "--from", "0")[1].startswith("--from is not positive: name the number of a record")
    cut = f"{rotated}:4: records 4 to 5 are cut off at the end. What comes before this line is intact."
    assert verified(str(rotated)) == (1, cut)
    path.write_bytes(path.read_bytes().replace(b"system", b"SYSTEM", 1))
    code, told = verified(str(path), "--from", "4")
    assert (code, told.partition(": ")[0]) == (1, f"{path}:1")
    assert verified(str(tmp_path / "absent"))[1].startswith("FILE ")
