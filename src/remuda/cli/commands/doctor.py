"""What is looked at on a machine: releases, the data directory and its keys, the disk, the process and its address.

What a look at a machine finds, and how it is told.

What is looked at in a store: whether it is whole, whether the clock fits it, and what waits for an operator.

``remuda doctor``: whether everything on this machine is as it should be.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from remuda.cli.commands.config import loaded
from remuda.cli.output import show
from remuda.config.loader import LoadedConfiguration
from remuda.datadir import DataDirectory
from remuda.http.server.server import ListenAddress, listen
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import RemudaError, StoreLocked
from remuda.kernel.sealing import load_keyring
from remuda.operations.kinds import OPEN, OPERATION
from remuda.reconcile.kinds import DELETION_GUARD
from remuda.region.kinds.orphans import ORPHAN
from remuda.store.sqlite.backup import Inspection, inspected
from remuda.store.sqlite.file import take_lock
from remuda.version import describe

State = Literal["good", "odd", "bad"]
"""As it should be, worth a look, or in need of somebody."""

_GRAVITY: tuple[State, ...] = ("good", "odd", "bad")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was looked at."""

    part: str
    state: State
    sentence: str
    remedy: str = ""


def good(part: str, sentence: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(part=part, state="good", sentence=sentence)


def odd(part: str, sentence: str, remedy: str) -> Finding:
    """Return that something is worth a look."""
    return Finding(part=part, state="odd", sentence=sentence, remedy=remedy)


def bad(part: str, sentence: str, remedy: str) -> Finding:
    """Return that something needs somebody to act."""
    return Finding(part=part, state="bad", sentence=sentence, remedy=remedy)


def worst(findings: Sequence[Finding]) -> State:
    """Return how it stands in all."""
    return max((each.state for each in findings), key=_GRAVITY.index, default="good")


def as_json(findings: Sequence[Finding]) -> str:
    """Return them for programs."""
    told = {"state": worst(findings), "findings": findings}
    return f"{msgspec.json.format(msgspec.json.encode(told)).decode()}\n"


def as_text(findings: Sequence[Finding]) -> str:
    """Return them for people, a line for each, and in the end how it stands."""
    width = max((len(each.part) for each in findings), default=0)
    lines = [f"{each.state:<4}  {each.part:<{width}}  {each.sentence} {each.remedy}".rstrip() for each in findings]
    return "".join(f"{line}\n" for line in (*lines, "", _verdict(findings)))


def _verdict(findings: Sequence[Finding]) -> str:
    count = {state: sum(each.state == state for each in findings) for state in _GRAVITY}
    if count["bad"]:
        return f"Somebody has to act: {count['bad']} bad, {count['odd']} odd."
    return f"It works, but look at what is odd: {count['odd']}." if count["odd"] else "All is well."


_SKEW = timedelta(seconds=5)
_NAMED = 5
_RELEASED_BY = {"orphans": "region", "leftovers": "compute", "strays": "compute"}
"""Which service lets a controller remove things again that had stopped."""

Document = Mapping[str, Any]


def examine_store(path: Path, clock: Clock, *, is_running: bool) -> Iterator[Finding]:
    """Look at a store, whether or not a process has it open."""
    try:
        with inspected(path) as store:
            damage = store.damage()
            if damage:
                remedy = "Keep a copy of the data directory, then restore a backup with remuda restore."
                yield bad("store", f"{path} is damaged: {damage}.", remedy)
                return
            yield good("store", f"{path} is whole.")
            yield _clock(store, clock)
            yield _operations(store, is_running=is_running)
            yield _orphans(store)
            yield _breakers(store)
    except RemudaError as error:
        yield bad("store", error.message, "")


def _clock(store: Inspection, clock: Clock) -> Finding:
    now, latest = clock.now(), store.latest()
    if latest is not None and latest > now + _SKEW:
        sentence = f"It is {now:%Y-%m-%d %H:%M:%S} UTC, but the store was written to at {latest:%Y-%m-%d %H:%M:%S}."
        return bad("clock", sentence, "Set the clock: how long tokens and deadlines last hangs on it.")
    return good("clock", f"It is {now:%Y-%m-%d %H:%M:%S} UTC, and the store has seen no later time.")


def _operations(store: Inspection, *, is_running: bool) -> Finding:
    found = list(store.documents(OPERATION, index=OPEN))
    stuck = [each for each in found if _phase(each) == "stuck"]
    if stuck:
        named = _some(f"{each['spec']['saga']} {each['metadata']['name']}" for each in stuck)
        remedy = "Each says in its undoError what keeps it from being undone: mend that, and it goes on by itself."
        return bad("operations", f"{len(stuck)} are stuck: {named}.", remedy)
    if found and not is_running:
        return good("operations", f"{len(found)} were cut off: the next start takes them back.")
    return good("operations", f"{len(found)} are under way, and none is stuck.")


def _phase(operation: Document) -> str:
    status = operation.get("status", {})
    return str(status.get("phase", "running"))


def _orphans(store: Inspection) -> Finding:
    found = list(store.documents(ORPHAN))
    if not found:
        return good("orphans", "The clouds had nothing that is nobody's when they were last looked at.")
    named = _some(f"{each['spec']['subject']} {each['spec']['providerName']}" for each in found)
    remedy = "GET /region/api/v2/recovery/orphans tells of each what it is, and how to adopt or forget it."
    return odd("orphans", f"{len(found)} things in the clouds are nobody's: {named}.", remedy)


def _breakers(store: Inspection) -> Finding:
    found = [each["spec"] for each in store.documents(DELETION_GUARD) if each.get("spec", {}).get("tripped")]
    if not found:
        return good("removals", "Nothing that nobody asked to remove was stopped from being removed.")
    named = _some(f"{each.get('controller')} {each.get('group', '')}".strip() for each in found)
    services = sorted({_RELEASED_BY.get(each.get("controller", ""), "region") for each in found})
    release = " and ".join(f"POST /{service}/api/v2/recovery/removals/release" for service in services)
    remedy = f"Find out why so much would go, and if it should, {release}."
    return bad("removals", f"Too much would have gone at once, so nothing more is removed: {named}.", remedy)


def _some(names: Iterable[str]) -> str:
    known = sorted(names)
    return ", ".join(known[:_NAMED]) + (" and more" if len(known) > _NAMED else "")


_GIB, _MIB = 1 << 30, 1 << 20
_LITTLE, _NEXT_TO_NOTHING = _GIB, 100 * _MIB
_OPEN_TO_OTHERS = 0o077
_PATIENCE_S = 5.0


def examine(found: LoadedConfiguration, clock: Clock) -> Iterator[Finding]:
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
        yield bad("store", error.message, "")
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
        return bad("keys", error.message, "")
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


def _address(address: ListenAddress) -> Finding:
    """Tell whether a process could have the address that it would be given."""
    try:
        with listen(address).socket:
            return good("process", f"None runs here. {address} is free for one.")
    except RemudaError as error:
        return odd("process", f"None runs here, and none could: {error.message}", "")


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


def doctor(
    *,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
    data: Path | None = None,
    listen: str | None = None,
    config: Path | None = None,
) -> int:
    """Look whether everything on this machine is as it should be, and change nothing.

    It works while a process runs and while none does: the release, the directory and its keys, the disk, the clock,
    whether the store is whole, and what waits for an operator in it. The exit code is 1 if somebody has to act.

    Parameters
    ----------
    output
        How to print it: text for people, json for programs.
    data
        The data directory, as for remuda up.
    listen
        HOST:PORT, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    findings = list(examine(loaded(config, data, listen), SystemClock()))
    show(as_json(findings) if output == "json" else as_text(findings))
    return 1 if worst(findings) == "bad" else 0
