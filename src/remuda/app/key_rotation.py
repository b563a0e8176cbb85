"""Rotation of the sealing keys of a data directory.

A rotation creates a key that seals from now on, seals everything that is stored with it, and removes the earlier keys
that nothing needs any more. While a process runs, the process seals (`app.key_watch`), and the rotation waits for it.
Otherwise the rotation has the store for itself, and removes what the history of the store keeps as well.

It can be interrupted at any point: the new key is written before anything is sealed with it, every object is sealed
again by itself, and a key is removed only after the files were searched for its seals. The next rotation then completes
the interrupted one before anything else; so does the next start of a process.

Clients keep sealed texts, too: browsers the known-browser cookie, for 180 days, and others the tokens of pages. An
earlier key opens these for as long, unless it is removed by hand.
"""

import os
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from remuda.app import registry
from remuda.datadir import DataDirectory, ResealRecord
from remuda.identity.login.browser_state import KNOWN_BROWSER_LIFETIME
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, StoreLocked, Unusable
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import (
    Keyring,
    SealingKey,
    load_keyring,
    remove_previous_keys,
    rotate_keyring_file,
)
from remuda.providers.simulated.server_documents import reseal_servers
from remuda.store.reseal import reseal
from remuda.store.sqlite.file import take_lock
from remuda.store.sqlite.seals import drop_history, drop_remains, keys_of_seals
from remuda.store.sqlite.store import SqlitePorts, open_store

_POLL_S = 0.2
_AFTER_HISTORY = (
    "wait until the history of the store no longer has them (30 minutes after a rotation), "
    "or stop the process and run remuda keys rotate"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """A key, and what needs it."""

    key: SealingKey
    is_current: bool
    stored: int
    """Number of stored texts that it has sealed."""
    superseded: datetime | None
    """When the next key was created, as far as known."""
    is_replaced: bool
    """Whether all objects are sealed with the current key, so that only the history of the store needs this one."""

    @property
    def kept_until(self) -> datetime | None:
        """The time until which browsers may keep what it has sealed; None if that is not known."""
        return None if self.superseded is None else self.superseded + KNOWN_BROWSER_LIFETIME

    def is_needed(self, now: datetime) -> bool:
        until = self.kept_until
        return self.is_current or self.stored > 0 or until is None or now < until


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The result of a rotation."""

    current: SealingKey
    is_new: bool
    """Whether the key was created now, rather than by a rotation that was interrupted."""
    is_beside_process: bool
    """Whether a running process has sealed everything; the history of its store keeps earlier seals for a while."""
    resealed: int
    removed: tuple[str, ...]
    previous: tuple[str, ...]
    """Earlier keys that stay."""


def key_uses(data: DataDirectory) -> list[KeyUse]:
    """Return the keys, the current one first, and what needs each of them. A process may run."""
    keys, stored = load_keyring(data.keys).keys, _stored_seals(data)
    newer = (None, *keys)
    is_complete = data.resealed().key == keys[0].id
    return [
        KeyUse(
            key=key,
            is_current=after is None,
            stored=stored[key.id],
            superseded=None if after is None else after.created,
            is_replaced=after is not None and is_complete,
        )
        for key, after in zip(keys, newer, strict=False)
    ]


async def rotate(data: DataDirectory, clock: Clock, randomness: Randomness) -> Rotation:
    """Seal everything with a new key, or complete the rotation that was interrupted."""
    is_running = _is_running(data)
    if is_running:
        is_new, resealed = await _rotate_beside_process(data, clock, randomness)
    else:
        is_new, resealed = await _rotate_alone(data, clock, randomness)
    keyring = load_keyring(data.keys)
    obsolete = {use.key.id for use in key_uses(data) if not use.is_needed(clock.now())}
    left = remove_previous_keys(data.keys, obsolete) if obsolete else keyring
    return Rotation(
        current=keyring.current,
        is_new=is_new,
        is_beside_process=is_running,
        resealed=resealed,
        removed=tuple(sorted(obsolete)),
        previous=tuple(key.id for key in left.previous),
    )


async def _rotate_alone(data: DataDirectory, clock: Clock, randomness: Randomness) -> tuple[bool, int]:
    """Return whether a key was created, and the number of objects that were sealed again."""
    is_new = _begin(data, clock, randomness)
    resealed = await _reseal(data, clock)
    if not is_new and not resealed:  # what an earlier key has sealed is only in logs, which are not rewritten
        is_new = _create(data, clock, randomness)
        resealed = await _reseal(data, clock)
    return is_new, resealed


async def _rotate_beside_process(data: DataDirectory, clock: Clock, randomness: Randomness) -> tuple[bool, int]:
    """Create a key unless a rotation is under way, and wait until the process has sealed everything with it.

    If the process ends before, complete the rotation without it.
    """
    keyring = load_keyring(data.keys)
    is_new = not keyring.previous or data.resealed().key == keyring.current.id
    current = rotate_keyring_file(data.keys, randomness, now=clock.now()).current if is_new else keyring.current
    while (done := data.resealed()).key != current.id:
        if not _is_running(data):
            return is_new, await _reseal(data, clock)
        await clock.sleep(_POLL_S)
    return is_new, done.resealed


def remove(data: DataDirectory, key_id: str) -> Keyring:
    """Remove an earlier key at once, unless something that is stored needs it."""
    current = load_keyring(data.keys).current.id
    if _is_running(data) and data.resealed().key != current:
        raise Unusable("The process has not sealed everything with the current key yet: run remuda keys rotate first.")
    found = {use.key.id: use for use in key_uses(data)}
    if key_id not in found:
        raise Invalid("KEY", f"{key_id} does not exist", remedy=f"use one of {', '.join(found)}")
    use = found[key_id]
    if use.is_current:
        raise Invalid("KEY", f"{key_id} is the current key", remedy="run remuda keys rotate first")
    if use.stored:
        problem = f"{key_id} has sealed {use.stored} stored texts, which could no longer be opened"
        raise Invalid("KEY", problem, remedy=_AFTER_HISTORY if _is_running(data) else "run remuda keys rotate first")
    return remove_previous_keys(data.keys, {key_id})


def _begin(data: DataDirectory, clock: Clock, randomness: Randomness) -> bool:
    """Create a key unless a rotation was interrupted, and return whether one was created."""
    current = load_keyring(data.keys).current.id
    return not set(_stored_seals(data)) - {current} and _create(data, clock, randomness)


def _create(data: DataDirectory, clock: Clock, randomness: Randomness) -> bool:
    lock = _lock(data)
    try:
        rotate_keyring_file(data.keys, randomness, now=clock.now())
    finally:
        os.close(lock)
    return True


async def _reseal(data: DataDirectory, clock: Clock) -> int:
    sealer = data.sealer()
    resealed = sum(reseal_servers(cloud, sealer, clock) for cloud in data.cloud_files())
    try:
        store = open_store(data.store, registry(), sealer, ports=SqlitePorts(clock=clock))
    except StoreLocked:
        raise _running(data) from None
    try:
        resealed += await reseal(store)
    finally:
        await store.close()
    drop_history(data.store)
    for cloud in data.cloud_files():
        drop_remains(cloud)
    data.record_reseal(ResealRecord(key=sealer.current_id, resealed=resealed))
    return resealed


def _stored_seals(data: DataDirectory) -> Counter[str]:
    files = [*([data.store] if data.store.exists() else []), *data.cloud_files()]
    return sum(map(keys_of_seals, files), Counter[str]())


def _is_running(data: DataDirectory) -> bool:
    """Tell whether a process has the store open, or raise Invalid if there is none."""
    try:
        os.close(_lock(data))
    except Unusable:
        return True
    return False


def _lock(data: DataDirectory) -> int:
    if not data.store.exists():
        raise Invalid("--data", f"{data.path} has no store", remedy="name the data directory of remuda up")
    data.check_store()
    try:
        return take_lock(data.store)
    except StoreLocked:
        raise _running(data) from None


def _running(data: DataDirectory) -> Unusable:
    return Unusable(
        f"A process has {data.store} open and seals with the keys that it has read: stop it, and run the command again."
    )
