"""What a directory would hold after a power cut: the arithmetic under the simulated disk.

A write reaches the platter for certain only by a sync. Until then the disk may have kept it, dropped it, or kept some
sectors of it, independent of its neighbours. A `Change` therefore remembers both what it overwrote, to be rolled back,
and what it wrote, to be put again on top of the synced content. Directory entries have the same fate: a file made or
deleted since the last directory sync may be absent or back again, the latter as a ghost with its synced content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from remuda.kernel.randomness import Randomness

Keep = Literal["none", "some", "all"]
Kept = dict[int, frozenset[int]]
"""The changes that arrived, by index, with the sectors of each that did."""

SECTOR = 512


@dataclass(frozen=True)
class Change:
    """One write, or one truncate when `after` is None (then `offset` is the new size)."""

    offset: int
    before: bytes
    size_before: int
    after: bytes | None

    def undo(self, content: bytearray) -> None:
        """Take the change back from a file it was the last to touch."""
        _grow(content, self.size_before)
        content[self.offset : self.offset + len(self.before)] = self.before
        del content[self.size_before :]

    def redo(self, content: bytearray, sectors: frozenset[int]) -> None:
        """Apply the change to whatever the file now holds, as far as it lies in these sectors."""
        if self.after is None:
            _grow(content, self.offset)
            del content[self.offset :]
            return
        for sector in sorted(sectors):
            start = max(sector * SECTOR, self.offset)
            end = min((sector + 1) * SECTOR, self.offset + len(self.after))
            _grow(content, start)
            content[start:end] = self.after[start - self.offset : end - self.offset]

    @property
    def sectors(self) -> frozenset[int]:
        """The numbers of the sectors a write touches; none for a truncate."""
        if not self.after:
            return frozenset()
        return frozenset(range(self.offset // SECTOR, (self.offset + len(self.after) - 1) // SECTOR + 1))


@dataclass
class CachedFile:
    """The changes to one file since its last sync, and whether its directory entry is safe."""

    entry_durable: bool
    changes: list[Change] = field(default_factory=list)

    def image(self, content: bytes, kept: Mapping[int, frozenset[int]]) -> bytes:
        """Go back from the present content to the synced one, then put what was kept on top."""
        image = bytearray(content)
        for change in reversed(self.changes):
            change.undo(image)
        for index, change in enumerate(self.changes):
            if index in kept:
                change.redo(image, kept[index])
        return bytes(image)


class Platter:
    """All files of one flat directory, by name."""

    def __init__(self, directory: Path, randomness: Randomness) -> None:
        self._directory = directory
        self._randomness = randomness
        self._files: dict[str, CachedFile] = {}
        self._ghosts: dict[str, bytes] = {}

    def opened(self, name: str, *, existed: bool) -> None:
        """Start to follow a file; one that was there before the simulation counts as durable."""
        self._files.setdefault(name, CachedFile(entry_durable=existed))

    def changed(self, name: str, change: Change) -> None:
        """Take note of a write or truncate that was carried out."""
        self._files[name].changes.append(change)

    def synced(self, name: str) -> None:
        """Make a file durable, and with a new file the directory too."""
        file = self._files[name]
        file.changes.clear()
        if not file.entry_durable:
            self._ghosts.clear()
            for each in self._files.values():
                each.entry_durable = True

    def deleting(self, name: str, *, durable: bool) -> None:
        """Take note of a delete about to be carried out."""
        file = self._files.pop(name, CachedFile(entry_durable=True))
        if durable:
            self._ghosts.pop(name, None)
        elif file.entry_durable:
            self._ghosts[name] = file.image((self._directory / name).read_bytes(), {})

    def power_cut(self, into: Path, keep: Keep, *, tear: bool) -> None:
        """Write what is left of the directory into another one."""
        into.mkdir(parents=True, exist_ok=True)
        kept = {name: self._draw_kept(file, keep) for name, file in sorted(self._files.items())}
        if tear:
            self._tear(kept, keep)
        present = {path.name for path in self._directory.iterdir() if not path.name.endswith("-shm")}
        for name in sorted(present | self._ghosts.keys()):
            image = self._image(name, keep, kept=kept.get(name, {}), exists=name in present)
            if image is not None:
                (into / name).write_bytes(image)

    def _draw_kept(self, file: CachedFile, keep: Keep) -> Kept:
        return {index: change.sectors for index, change in enumerate(file.changes) if self._arrives(keep)}

    def _tear(self, kept: dict[str, Kept], keep: Keep) -> None:
        """Leave one write on the platter only in part: of those that arrived or, if none may arrive, of all."""
        writes = [
            (name, index, sorted(change.sectors))
            for name in kept
            for index, change in enumerate(self._files[name].changes)
            if len(change.sectors) > 1 and (keep == "none" or index in kept[name])
        ]
        if not writes:
            return
        name, index, sectors = writes[self._randomness.randrange(len(writes))]
        # Any part may be missing, not only the end; a draw of all or none would be no tear.
        pattern = 1 + self._randomness.randrange(2 ** len(sectors) - 2)
        kept[name][index] = frozenset(sector for bit, sector in enumerate(sectors) if pattern >> bit & 1)

    def _image(self, name: str, keep: Keep, *, kept: Kept, exists: bool) -> bytes | None:
        file = self._files.get(name)
        if exists and file is None:
            return (self._directory / name).read_bytes()
        if file is not None and (file.entry_durable or kept or self._arrives(keep)):
            return file.image((self._directory / name).read_bytes(), kept)
        deletion_arrived = file is None and self._arrives(keep)
        return None if deletion_arrived else self._ghosts.get(name)

    def _arrives(self, keep: Keep) -> bool:
        return keep == "all" or (keep == "some" and self._randomness.randrange(2) == 1)


def _grow(content: bytearray, size: int) -> None:
    content.extend(bytes(max(0, size - len(content))))
