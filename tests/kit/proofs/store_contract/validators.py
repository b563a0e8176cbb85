"""What a recorded stream must look like: pure functions, each with one sentence for what it finds wrong.

A *stream* is the changes that one watch showed, in the order in which it showed them. *Writes* are what was
acknowledged to writers meanwhile. Versions are opaque, so order is validated by time: of two writes of which one was
acknowledged before the other began, the first comes first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from remuda.store.contract import Bookmark, Change, Event
from remuda.store.objects import ResourceT

Stream: TypeAlias = Sequence[Change[ResourceT]]
Key = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Write:
    """A write that was acknowledged. Of a deletion only the request is: the store itself marks, waits and removes."""

    type: Literal["added", "modified", "deleted"]
    name: str
    uid: str
    version: str
    """What the writer was told, or nothing of a deletion."""
    began: int
    ended: int
    """Ticks of a clock that all writers share."""


def key(change: Change[ResourceT]) -> Key:
    return change.type, change.resource.name, change.version


def unique(stream: Stream[ResourceT]) -> None:
    """No change is shown twice."""
    counts = Counter(change.version for change in stream)
    twice = [version for version, count in counts.items() if count > 1]
    assert not twice, f"shown more than once: the changes at {twice}"


def ordered(stream: Stream[ResourceT], writes: Iterable[Write]) -> None:
    """Whoever wrote after another was acknowledged is shown after it."""
    by_version = {write.version: write for write in writes if write.type != "deleted"}
    latest: Write | None = None
    for write in (by_version[change.version] for change in stream if change.version in by_version):
        if latest is not None:
            sentence = f"{write.name} at {write.version} is shown after {latest.name} at {latest.version}, begun later"
            assert latest.began <= write.ended, sentence
        latest = write if latest is None or write.began > latest.began else latest


def reliable(stream: Stream[ResourceT], writes: Iterable[Write]) -> None:
    """Every write is shown, and nothing else but what the store does to what was deleted."""
    shown = {(change.type, change.version) for change in stream}
    removed = {change.resource.uid for change in stream if change.type == "deleted"}
    writes = list(writes)
    for write in writes:
        seen = write.uid in removed if write.type == "deleted" else (write.type, write.version) in shown
        assert seen, f"never shown: {write.name} {write.type} at {write.version or 'the end'}"
    written = {write.version for write in writes}
    doomed = {write.uid for write in writes if write.type == "deleted"}
    for change in stream:
        is_ours = change.resource.uid in doomed and (change.type == "deleted" or change.resource.is_deleting)
        assert change.version in written or is_ours, f"shown but never written: {key(change)}"


def never_back(stream: Stream[ResourceT], writes: Iterable[Write]) -> None:
    """Each object lives one life after the other: added, then ever newer, then deleted and never seen again."""
    alive: dict[str, str] = {}
    ended: set[str] = set()
    ages: dict[str, int] = {}
    age_of = {write.version: write.ended for write in writes}
    for change in stream:
        name, uid = change.resource.name, change.resource.uid
        age = age_of.get(change.version, ages.get(uid, 0))
        assert age >= ages.get(uid, 0), f"shown after a newer state: {key(change)}"
        ages[uid] = age
        assert uid not in ended, f"seen again after its end: {key(change)}"
        if change.type == "added":
            assert name not in alive, f"added while another incarnation is there: {key(change)}"
            alive[name] = uid
        assert alive.get(name) == uid, f"seen before it was added: {key(change)}"
        if change.type == "deleted":
            ended.add(alive.pop(name))


def filtered(narrow: Stream[ResourceT], whole: Stream[ResourceT], labels: Mapping[str, str]) -> None:
    """A filtered stream is the whole one as somebody sees it who knows only what carries the labels."""
    inside: set[str] = set()
    expected: list[Key] = []
    for change in whole:
        name, matches = change.resource.name, labels.items() <= change.resource.metadata.labels.items()
        was, now = name in inside, matches and change.type != "deleted"
        if was or now:
            seen_as = "modified" if was and now else "added" if now else "deleted"
            expected.append((seen_as, name, change.version))
        inside = inside | {name} if now else inside - {name}
    assert [key(change) for change in narrow] == expected, "the filter shows something else than what carries it"
    strangers = [key(change) for change in narrow if not labels.items() <= change.resource.metadata.labels.items()]
    assert not strangers, f"shown in a state that does not carry the labels: {strangers}"


def resumable(stream: Stream[ResourceT], resumed: Mapping[str, Stream[ResourceT]]) -> None:
    """Cut after any change and resumed from its version, the stream goes on as if it had not been cut."""
    for position, change in enumerate(stream):
        stitched = [*stream[: position + 1], *resumed[change.version]]
        same = [key(part) for part in stitched] == [key(part) for part in stream]
        assert same, f"cut after {key(change)}, the stream goes on differently"


def bookmarkable(events: Sequence[Event[ResourceT]], resumed: Mapping[str, Stream[ResourceT]]) -> None:
    """Cut after any bookmark and resumed from its version, the stream goes on as if it had not been cut."""
    for position, event in enumerate(events):
        if isinstance(event, Bookmark):
            rest = [key(later) for later in events[position:] if isinstance(later, Change)]
            same = [key(change) for change in resumed[event.version]] == rest
            assert same, f"resumed from the bookmark at {event.version}, the stream goes on differently"
