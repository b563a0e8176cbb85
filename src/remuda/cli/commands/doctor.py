"""Command ``remuda doctor``: checks of an installation.

It checks the release, the data directory and its keys, the disk, the process and its address, the integrity of the
store, its TLS certificate, the clock, and what waits for an operator.
"""

import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from remuda.cli.client.transport import Connections
from remuda.cli.commands.config import load_configuration
from remuda.cli.commands.doctor_reach import check_reach
from remuda.cli.findings import Finding, as_json, as_text, critical, ok, warning, worst
from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import write
from remuda.config.loader import LoadedConfiguration
from remuda.datadir import DataDirectory
from remuda.http.server.server import ListenAddress, listen
from remuda.http.transport import ClientSettings, HttpTransport, OutboundRequest, read_response
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import RemudaError, ServerUnreachable, StoreLocked
from remuda.kernel.sealing import load_keyring
from remuda.operations.kinds import OPEN, OPERATION
from remuda.reconcile.kinds import DELETION_GUARD
from remuda.region.kinds.orphans import ORPHAN
from remuda.store.sqlite.backup import Inspection, inspected
from remuda.store.sqlite.file import take_lock
from remuda.version import describe

_SKEW = timedelta(seconds=5)
_MAX_NAMES = 5
_RELEASED_BY = {"orphans": "region", "previous-servers": "compute", "compute-orphans": "compute"}
"""Services that resume deletions, by the controller that has paused."""

StoredDocument = Mapping[str, Any]


def check_store(path: Path, clock: Clock, *, is_running: bool) -> Iterator[Finding]:
    """Yield the findings of a store, whether or not a process has it open."""
    try:
        with inspected(path) as store:
            damage = store.damage()
            if damage:
                remedy = "Keep a copy of the data directory, then restore a backup with remuda restore."
                yield critical("store", f"{path} is damaged: {damage}.", remedy)
                return
            yield ok("store", f"{path} is intact.")
            yield _clock(store, clock)
            yield _operations(store, is_running=is_running)
            yield _orphans(store)
            yield _deletion_guards(store)
    except RemudaError as error:
        yield critical("store", error.message, "")


def _clock(store: Inspection, clock: Clock) -> Finding:
    now, latest = clock.now(), store.latest()
    if latest is not None and latest > now + _SKEW:
        message = f"It is {now:%Y-%m-%d %H:%M:%S} UTC, but the last write was at {latest:%Y-%m-%d %H:%M:%S}."
        return critical("clock", message, "Set the clock: tokens and deadlines depend on it.")
    return ok("clock", f"It is {now:%Y-%m-%d %H:%M:%S} UTC, after the last write to the store.")


def _operations(store: Inspection, *, is_running: bool) -> Finding:
    found = list(store.documents(OPERATION, index=OPEN))
    stuck = [each for each in found if _phase(each) == "stuck"]
    if stuck:
        named = _some(f"{each['spec']['saga']} {each['metadata']['name']}" for each in stuck)
        remedy = "The undoError of each says why its rollback fails: fix that, and it continues by itself."
        return critical("operations", f"{len(stuck)} are stuck: {named}.", remedy)
    if found and not is_running:
        return ok("operations", f"{len(found)} were interrupted: the next start rolls them back.")
    return ok("operations", f"{len(found)} are running, and none is stuck.")


def _phase(operation: StoredDocument) -> str:
    status = operation.get("status", {})
    return str(status.get("phase", "running"))


def _orphans(store: Inspection) -> Finding:
    found = list(store.documents(ORPHAN))
    if not found:
        return ok("orphans", "The last check of the providers found no orphans.")
    named = _some(f"{each['spec']['subject']} {each['spec']['providerName']}" for each in found)
    remedy = "GET /region/api/v2/recovery/orphans lists them, with how to adopt or forget each."
    return warning("orphans", f"{len(found)} resources at providers are orphans: {named}.", remedy)


def _deletion_guards(store: Inspection) -> Finding:
    found = [each["spec"] for each in store.documents(DELETION_GUARD) if each.get("spec", {}).get("tripped")]
    if not found:
        return ok("deletions", "No controller has paused deletion.")
    named = _some(f"{each.get('controller')} {each.get('group', '')}".strip() for each in found)
    services = sorted({_RELEASED_BY.get(each.get("controller", ""), "region") for each in found})
    release = " and ".join(f"POST /{service}/api/v2/recovery/deletions/resume" for service in services)
    remedy = f"Find out why, and if the deletions are right, send {release}."
    message = f"Deletion is paused, because too many objects would be deleted without a request: {named}."
    return critical("deletions", message, remedy)


def _some(names: Iterable[str]) -> str:
    known = sorted(names)
    return ", ".join(known[:_MAX_NAMES]) + (" and more" if len(known) > _MAX_NAMES else "")


_GIB, _MIB = 1 << 30, 1 << 20
_LOW_SPACE, _NO_SPACE = _GIB, 100 * _MIB
_OTHER_USERS = 0o077
_ONE_ATTEMPT = ClientSettings(read_s=5.0, total_s=5.0, attempts=1)


async def run_checks(found: LoadedConfiguration, clock: Clock) -> AsyncIterator[Finding]:
    server = found.configuration.server
    data = DataDirectory(server.data)
    yield _releases()
    if not data.path.is_dir():
        remedy = "The first start of remuda up creates it, or name another."
        yield warning("directory", f"{data.path} does not exist.", remedy)
        yield _address(server.listen)
        for finding in check_reach(found.configuration, data, clock, is_running=False):
            yield finding
        return
    yield _directory(data.path)
    yield _disk(data)
    yield _keys(data)
    is_running = _is_running(data)
    if is_running:
        for finding in await _process(data):
            yield finding
        yield _metrics(data)
    else:
        yield _address(server.listen)
    for finding in (
        *check_reach(found.configuration, data, clock, is_running=is_running),
        *_store(data, clock, is_running=is_running),
    ):
        yield finding


def _store(data: DataDirectory, clock: Clock, *, is_running: bool) -> Iterator[Finding]:
    if not data.store.exists():
        yield warning("store", f"{data.store} does not exist.", "The first start of remuda up creates it.")
        return
    try:
        data.check_store()
    except RemudaError as error:
        yield critical("store", error.message, "")
        return
    if not data.store.stat().st_size:
        yield warning("store", f"{data.store} is empty: a first start was interrupted.", "Start remuda up again.")
        return
    yield from check_store(data.store, clock, is_running=is_running)


def _releases() -> Finding:
    import apsw  # noqa: PLC0415  only for its version

    platform_ = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {platform.system()}"
    return ok("release", f"{describe()}, {platform_}, {sys.executable}.")


def _directory(path: Path) -> Finding:
    found = path.stat()
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return critical("directory", f"{path} is not accessible to this user.", "Run this command as its owner.")
    if found.st_mode & _OTHER_USERS:
        return warning("directory", f"{path} is accessible to other users.", f"Run chmod 700 {path}.")
    return ok("directory", f"{path} is accessible only to its owner.")


def _disk(data: DataDirectory) -> Finding:
    usage = shutil.disk_usage(data.path)
    size = sum(path.stat().st_size for path in data.path.glob(f"{data.store.name}*"))
    message = f"{_amount(usage.free)} of {_amount(usage.total)} are free; the store has {_amount(size)}."
    remedy = "Free some space: on a full disk writes fail, and a backup needs as much space as the store."
    if usage.free < _NO_SPACE:
        return critical("disk", message, remedy)
    return warning("disk", message, remedy) if usage.free < max(_LOW_SPACE, size) else ok("disk", message)


def _amount(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.1f} MiB"


def _keys(data: DataDirectory) -> Finding:
    if not data.keys.exists():
        if data.store.exists():
            remedy = "Restore the keys from their backup: without them the secrets in the store are lost."
            return critical("keys", f"{data.keys} does not exist, but a store does.", remedy)
        return warning("keys", f"{data.keys} does not exist.", "The first start of remuda up creates it.")
    try:
        count = len(load_keyring(data.keys).keys)
    except RemudaError as error:
        return critical("keys", error.message, "")
    keys = "a key" if count == 1 else f"{count} keys"
    return ok("keys", f"{data.keys} has {keys}. Backups of the store do not contain keys: keep a copy elsewhere.")


def _is_running(data: DataDirectory) -> bool:
    """Tell whether a process has the store open, by the lock that no process can leave behind."""
    if not data.store.exists():
        return False
    try:
        os.close(take_lock(data.store))
    except StoreLocked:
        return True
    return False


def _address(address: ListenAddress) -> Finding:
    """Return whether a process could listen on its address."""
    try:
        with listen(address).socket:
            return ok("process", f"No process is running. {address} is free.")
    except RemudaError as error:
        return warning("process", f"No process is running, and none could start: {error.message}", "")


class _ReleaseRead(msgspec.Struct, frozen=True):
    version: str = ""
    revision: str = ""


async def _process(data: DataDirectory) -> list[Finding]:
    url = data.running_at()
    if url is None:
        remedy = "Try again in a moment; if this persists, stop the process."
        return [warning("process", "A process has the store open but has not published its address.", remedy)]
    try:
        async with Connections(settings=_ONE_ATTEMPT, certificate=data.certificate_of_process()) as connections:
            transport, _ = connections.at(url)
            version = await transport.exchange(OutboundRequest(name="version", method="GET", target="/api/version"))
            release = read_response(version.content, _ReleaseRead, server=url)
            findings = [await _readiness(transport, url)]
    except RemudaError as error:
        remedy = "Check its log, and restart it if this persists."
        return [critical("process", f"The process that has the store open does not respond. {error.message}", remedy)]
    ours = describe()
    if (release.version, release.revision) != (ours.version, ours.revision):
        message = f"The process is of another release: {release.version} (revision {release.revision})."
        findings.append(warning("process", message, "Restart it to use this release."))
    return findings


def _metrics(data: DataDirectory) -> Finding:
    url = data.metrics_at()
    return ok("metrics", f"The metrics are at {url}." if url else "The metrics are not served.")


async def _readiness(transport: HttpTransport, url: str) -> Finding:
    try:
        await transport.exchange(OutboundRequest(name="readiness", method="GET", target="/readyz"))
    except ServerUnreachable:
        raise
    except RemudaError as error:
        message = f"A process is running at {url} but is not ready: {error.message}"
        return warning("process", message, "Wait, or check its log.")
    return ok("process", f"A process is running at {url} and is ready.")


async def doctor(
    *,
    output: Annotated[
        Literal["text", "json"], Parameter(name=["--output", "-o"], help="Print the result in this format.")
    ] = "text",
    data: DataOption = None,
    listen: str | None = None,
    config: ConfigOption = None,
) -> int:
    """Check the installation on this machine without changing anything.

    It works whether or not a process runs. The exit code is 1 if action is required.

    Example::

        remuda doctor --data ./data

    :param listen: Check this HOST:PORT, as for remuda up.
    """
    findings = [each async for each in run_checks(load_configuration(config, data, listen), SystemClock())]
    write(as_json(findings) if output == "json" else as_text(findings))
    return 1 if worst(findings) == "critical" else 0
