"""What is looked at on a machine: releases, the data directory and its keys, the disk, the process and its address."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from remuda.cli.examining_store import examine_store
from remuda.cli.findings import Finding, bad, good, odd
from remuda.config.load import Loaded
from remuda.datadir import DataDirectory
from remuda.http.server.server import Address, listen
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, StoreLocked
from remuda.kernel.sealing import load_keyring
from remuda.store.sqlite.file import take_lock
from remuda.version import describe

_GIB, _MIB = 1 << 30, 1 << 20
_LITTLE, _NEXT_TO_NOTHING = _GIB, 100 * _MIB
_OPEN_TO_OTHERS = 0o077
_PATIENCE_S = 5.0


def examine(found: Loaded, clock: Clock) -> Iterator[Finding]:
    """Look at everything, one after the other. Nothing is changed."""
    server = found.configuration.server
    data = DataDirectory(server.data)
    yield _releases()
    if not data.path.is_dir():
        yield odd("directory", f"{data.path} is not there.", "The first start of remuda up makes it, or name another.")
        yield _address(server.listen)
        return
    yield _directory(data.path)
    yield _disk(data)
    yield _keys(data)
    is_running = _is_running(data)
    yield from _process(data) if is_running else (_address(server.listen),)
    yield from _store(data, clock, is_running=is_running)


def _store(data: DataDirectory, clock: Clock, *, is_running: bool) -> Iterator[Finding]:
    if not data.store.exists():
        yield odd("store", f"{data.store} is not there.", "The first start of remuda up makes it.")
        return
    try:
        data.check_store()
    except RemudaError as error:
        yield bad("store", error.sentence, "")
        return
    if not data.store.stat().st_size:
        yield odd("store", f"{data.store} is empty: a first start was cut off.", "The next one makes it.")
        return
    yield from examine_store(data.store, clock, is_running=is_running)


def _releases() -> Finding:
    import apsw  # noqa: PLC0415  only its version is wanted

    here = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {platform.system()}"
    return good("release", f"{describe()}, {here}, {sys.executable}.")


def _directory(path: Path) -> Finding:
    found = path.stat()
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return bad("directory", f"{path} cannot be read and written by this user.", "Run this as its owner.")
    if found.st_mode & _OPEN_TO_OTHERS:
        return odd("directory", f"{path} can be entered by other users.", f"Run chmod 700 {path}.")
    return good("directory", f"{path} is ours alone.")


def _disk(data: DataDirectory) -> Finding:
    usage = shutil.disk_usage(data.path)
    size = sum(path.stat().st_size for path in data.path.glob(f"{data.store.name}*"))
    sentence = f"{_amount(usage.free)} of {_amount(usage.total)} are free; the store has {_amount(size)}."
    remedy = "Free some space: a store that finds no room takes no writes, and a backup needs as much as the store has."
    if usage.free < _NEXT_TO_NOTHING:
        return bad("disk", sentence, remedy)
    return odd("disk", sentence, remedy) if usage.free < max(_LITTLE, size) else good("disk", sentence)


def _amount(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.1f} MiB"


def _keys(data: DataDirectory) -> Finding:
    if not data.keys.exists():
        if data.store.exists():
            remedy = "Restore them from their backup, because what they sealed opens with nothing else."
            return bad("keys", f"{data.keys} is not there, but a store is.", remedy)
        return odd("keys", f"{data.keys} is not there.", "The first start of remuda up makes them.")
    try:
        count = len(load_keyring(data.keys).keys)
    except RemudaError as error:
        return bad("keys", error.sentence, "")
    several = "a key" if count == 1 else f"{count} keys"
    return good("keys", f"{data.keys} has {several}. No backup of the store has them: keep a copy elsewhere.")


def _is_running(data: DataDirectory) -> bool:
    """Tell whether a process has the store, by the lock that no process can leave behind."""
    if not data.store.exists():
        return False
    try:
        os.close(take_lock(data.store))
    except StoreLocked:
        return True
    return False


def _address(address: Address) -> Finding:
    """Tell whether a process could have the address that it would be given."""
    try:
        with listen(address).socket:
            return good("process", f"None runs here. {address} is free for one.")
    except RemudaError as error:
        return odd("process", f"None runs here, and none could: {error.sentence}", "")


def _process(data: DataDirectory) -> Iterator[Finding]:
    url = data.running_at()
    if url is None:
        remedy = "Try again in a moment; if it stays so, stop that process."
        yield odd("process", "One has the store, and has not said where it answers.", remedy)
        return
    import httpx2  # noqa: PLC0415  only needed where a process runs

    try:
        with httpx2.Client(base_url=url, timeout=_PATIENCE_S, trust_env=False) as client:
            readiness, release = client.get("/readyz"), client.get("/api/version").json()
    except (httpx2.HTTPError, ValueError) as error:
        remedy = "Look at its log, and stop it if it stays so."
        yield bad("process", f"The one that has the store does not answer at {url} ({type(error).__name__}).", remedy)
        return
    if readiness.is_success:
        yield good("process", f"One runs at {url}, and is ready.")
    else:
        yield odd("process", f"One runs at {url}, and is not ready: {readiness.text}", "Wait, or look at its log.")
    ours = describe()
    if (release.get("version"), release.get("revision")) != (ours.version, ours.revision):
        named = f"{release.get('version')} (revision {release.get('revision')})"
        yield odd("process", f"It is another release than this command: {named}.", "Restart it to have this one.")
