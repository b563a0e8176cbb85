"""Simulation of cloud-init: the effects of user data that a console shows.

Only names, paths, sizes, fingerprints and counts are extracted. File contents, passwords and commands may be secrets
and are not shown. Input that cannot be read becomes a warning, as in cloud-init. A simulated machine has no network and
runs no user code: parts that fetch, run or compute something are skipped, and the console says so. So are templates
with placeholders; a template without any is applied as it is.

YAML is read with bounded effort, because users write it. YAML's own loaders recurse as deep as the document, the C one
until the process dies, and expand aliases and merge keys without bound. So only the parser is used, which does neither:
its events become lists, mappings and strings here, and an alias becomes None. Scalars stay strings. All documents of
one user data, which may be hundreds of archives in archives, share one budget, and no part is read that is not shown.
"""

import base64
import binascii
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from remuda.cloudinit.multipart import UnrecognizedUserData, content_type_of
from remuda.cloudinit.user_data import Part, parts

_DEEPEST_YAML = 16
_MAX_EVENTS = 4000
_MAX_YAML = 128 * 1024
_TAG_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])\ufeff?%TAG")
"""Each directive is compared with all others, and each tag that uses one repeats its prefix."""


class UnreadableConfig(Exception):  # noqa: N818  the name describes the document
    """Raised when a document cannot be read; the message quotes nothing of it."""


@dataclass(slots=True)
class YamlBudget:
    """Budget of the YAML documents of one user data: what may still be read of them."""

    events: int = _MAX_EVENTS
    size: int = _MAX_YAML
    """Bytes of the documents."""

    def take_document(self, document: bytes) -> None:
        """Take a document's bytes, or raise UnreadableConfig if it is too long."""
        if len(document) > self.size:
            raise UnreadableConfig(f"it is too long: at most {_MAX_YAML} bytes of YAML are shown here")
        self.size -= len(document)

    def take_event(self) -> None:
        """Take one event, or raise UnreadableConfig if there are none left."""
        if not self.events:
            raise UnreadableConfig("it has too many entries")
        self.events -= 1


def read_cloud_config(document: bytes, budget: YamlBudget) -> dict[str, Any]:
    """Return the first document, or raise UnreadableConfig."""
    value = _read(document, budget)
    if value is not None and not isinstance(value, dict):
        raise UnreadableConfig("it is not a mapping")
    return value or {}


def read_archive(document: bytes, budget: YamlBudget) -> list[dict[str, Any]]:
    """Return the entries of an archive, each with its `content`, or raise UnreadableConfig; others are left out."""
    value = _read(document, budget)
    if value is not None and not isinstance(value, list):
        raise UnreadableConfig("it is not a list")
    entries = [{"content": each} if isinstance(each, str) else each for each in value or ()]
    return [each for each in entries if isinstance(each, dict) and isinstance(each.get("content"), str)]


def _read(document: bytes, budget: YamlBudget) -> Any:
    budget.take_document(document)
    try:
        text = document.decode()
    except UnicodeDecodeError:
        raise UnreadableConfig("it is not UTF-8") from None
    if _TAG_DIRECTIVE.search(text):
        raise UnreadableConfig("it has a %TAG directive, which cloud-init has no use for")
    try:
        return _value(_events(text, budget), None, 0)
    except yaml.YAMLError:
        raise UnreadableConfig("it is not valid YAML") from None


def _events(text: str, budget: YamlBudget) -> Iterator[yaml.Event]:
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        budget.take_event()
        if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            yield event
    yield yaml.StreamEndEvent()


def _value(events: Iterator[yaml.Event], event: yaml.Event | None, depth: int) -> Any:
    """Return the value that an event begins, by default the next event."""
    event = next(events) if event is None else event
    if depth > _DEEPEST_YAML:
        raise UnreadableConfig("it is nested too deep")
    if isinstance(event, yaml.ScalarEvent):
        return event.value
    if isinstance(event, yaml.SequenceStartEvent):
        return [_value(events, each, depth + 1) for each in _inside(events)]
    if isinstance(event, yaml.MappingStartEvent):
        found = {}
        for each in _inside(events):
            key, value = _value(events, each, depth + 1), _value(events, None, depth + 1)
            if isinstance(key, str):
                found[key] = value
        return found
    return None


def _inside(events: Iterator[yaml.Event]) -> Iterator[yaml.Event]:
    """Yield the events that begin the values of a collection."""
    while not isinstance(event := next(events), yaml.CollectionEndEvent):
        yield event


_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # group order of P-256


def host_keys(seed: str) -> list[tuple[str, str]]:
    """Return the names and OpenSSH lines of a server's public host keys, which are real keys derived from the seed."""
    edwards = Ed25519PrivateKey.from_private_bytes(_secret("ed25519", seed)).public_key()
    number = int.from_bytes(_secret("ecdsa", seed)) % (_ORDER - 1) + 1
    curve = derive_private_key(number, SECP256R1()).public_key()
    return [
        (name, key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
        for name, key in (("ECDSA", curve), ("ED25519", edwards))
    ]


def fingerprint(line: str) -> str | None:
    """Return the SHA256 fingerprint of an OpenSSH public key as `ssh-keygen -l` prints it, or None."""
    words = line.split(maxsplit=_MAX_WORDS)[:_MAX_WORDS]
    for key_type, blob in pairwise(words):
        try:
            raw = base64.b64decode(blob, validate=True)
        except (binascii.Error, ValueError):
            continue
        if raw[4 : 4 + len(key_type)] == key_type.encode():  # the blob repeats the key type
            digest = hashlib.sha256(raw).digest()
            return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
    return None


def _secret(key_type: str, seed: str) -> bytes:
    return hashlib.sha256(f"{key_type} host key of {seed}".encode()).digest()


_MOST = 64
_MAX_WORDS = 16
_MAX_PARTS = 8
_DEEPEST_ARCHIVE = 4
_LONGEST = 120
_TRUSTED = "TrustedUserCAKeys"
_SKIPPED: Mapping[str, str] = {
    "text/x-include-url": "fetches nothing",
    "text/x-include-once-url": "fetches nothing",
    "text/cloud-config-jsonp": "applies no JSON patches",
    "text/part-handler": "runs no handlers",
    "text/jinja2": "fills in no templates",
}
"""Effects that a simulated machine skips, by the content type of the part that asks for them."""
_PLACEHOLDERS = (b"{{", b"{%", b"{#")


@dataclass(slots=True)
class CloudInitEffects:
    """Effects of user data."""

    hostname: str = ""
    users: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)
    """Paths, and the number of bytes written."""
    commands: int = 0
    scripts: list[tuple[str, int]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """Fingerprints of the authorized keys."""
    authorities: list[str] = field(default_factory=list)
    """Fingerprints of the trusted certificate authorities."""
    warnings: list[str] = field(default_factory=list)


def cloud_init_effects(user_data: bytes) -> CloudInitEffects:
    """Return what user data does, as far as it is shown."""
    applied, budget = CloudInitEffects(), YamlBudget()
    try:
        found = parts(user_data)
    except UnrecognizedUserData as error:
        applied.warnings.append(f"Unhandled non-multipart userdata: {error.reason}")
        return applied
    single = (inner for part in found for inner in _unwrapped(budget, part))
    for number, part in enumerate(islice(single, _MAX_PARTS), 1):
        _apply_part(applied, budget, part, f"part-{number:03d}")
    if next(single, None) is not None:
        applied.warnings.append(f"Only the first {_MAX_PARTS} parts are shown here")
    return applied


class CloudInitEffectsCache:
    """The effects of the user data that consoles showed last, by its digest, since a console is read many times."""

    def __init__(self, most: int = _MOST) -> None:
        """Take the number of user data whose effects are kept."""
        self._most = most
        self._effects: dict[bytes, CloudInitEffects] = {}

    def effects(self, user_data: bytes) -> CloudInitEffects:
        digest = hashlib.sha256(user_data).digest()
        found = self._effects.pop(digest, None) or cloud_init_effects(user_data)
        self._effects[digest] = found
        if len(self._effects) > self._most:
            del self._effects[next(iter(self._effects))]
        return found


def _unwrapped(budget: YamlBudget, part: Part, depth: int = 0) -> Iterator[Part | str]:
    """Yield the parts inside a part, or why there are none: each entry of an archive is like a part of its own."""
    if part.content_type == "text/jinja2" and not any(marker in part.content for marker in _PLACEHOLDERS):
        content = part.content.partition(b"\n")[2]
        yield Part(content_type_of(content) or "text/plain", part.filename, content)
    elif part.content_type != "text/cloud-config-archive":
        yield part
    elif depth == _DEEPEST_ARCHIVE:
        yield "An archive in so many others is not shown here"
    else:
        try:
            entries = read_archive(part.content, budget)
        except UnreadableConfig as error:
            yield f"Failed at reading the archive {_printable(part.filename or 'user-data')}: {error}"
            return
        for each in entries:
            yield from _unwrapped(budget, _entry(each), depth + 1)


def _entry(entry: Mapping[str, Any]) -> Part:
    content = entry["content"].encode(errors="replace")
    declared, name = entry.get("type"), entry.get("filename")
    kind = declared if isinstance(declared, str) and declared else content_type_of(content) or "text/cloud-config"
    return Part(kind, name if isinstance(name, str) else None, content)


def _apply_part(applied: CloudInitEffects, budget: YamlBudget, part: Part | str, default_name: str) -> None:
    if isinstance(part, str):
        applied.warnings.append(part)
        return
    name = part.filename or default_name
    if part.content_type == "text/cloud-config":
        try:
            _apply_config(applied, read_cloud_config(part.content, budget))
        except UnreadableConfig as error:
            applied.warnings.append(f"Failed at merging in cloud config part from {_printable(name)}: {error}")
    elif part.content_type in {"text/x-shellscript", "text/cloud-boothook"}:
        applied.scripts.append((_printable(name), _count_lines(part.content)))
    else:
        applied.warnings.append(_skip_message(part, name))


def _count_lines(script: bytes) -> int:
    return script.count(b"\n") + (not script.endswith(b"\n"))


def _skip_message(part: Part, name: str) -> str:
    kind = _printable(part.content_type)
    if part.content_type not in _SKIPPED:
        return f"Unhandled unknown content-type ({kind}) userdata: {_printable(name)}"
    return f"Skipping part {_printable(name)} of type {kind}: a simulated machine {_SKIPPED[part.content_type]}"


def _apply_config(applied: CloudInitEffects, config: Mapping[Any, Any]) -> None:
    for name in ("hostname", "fqdn"):
        if isinstance(config.get(name), str):
            applied.hostname = _printable(config[name])
            break
    for user in _list(config, "users"):
        named = user.get("name") if isinstance(user, Mapping) else user
        if isinstance(named, str) and named != "default":
            applied.users.append(_printable(named))
        if isinstance(user, Mapping):
            applied.keys.extend(_fingerprints(_texts(_list(user, "ssh_authorized_keys"))))
    for package in _list(config, "packages"):
        named = package[0] if isinstance(package, list) and package else package
        if isinstance(named, str):
            applied.packages.append(_printable(named))
    applied.commands += len(_list(config, "runcmd"))
    applied.keys.extend(_fingerprints(_texts(_list(config, "ssh_authorized_keys"))))
    _write_files(applied, [each for each in _list(config, "write_files") if isinstance(each, Mapping)])


def _write_files(applied: CloudInitEffects, files: list[Mapping[Any, Any]]) -> None:
    contents = {
        each["path"]: each.get("content")
        for each in files
        if isinstance(each.get("path"), str) and isinstance(each.get("content", ""), str | bytes)
    }
    trusted: dict[str, None] = {}  # each file of keys is read once, however often it is named
    for path, content in contents.items():
        applied.files.append((_printable(path), len(content or b"")))
        for line in content.splitlines() if isinstance(content, str) else ():
            word, _, named = line.strip().partition(" ")
            if word == _TRUSTED:
                trusted[named.strip()] = None
    for path in trusted:
        keys = contents.get(path)
        if isinstance(keys, str):
            applied.authorities.extend(_fingerprints(keys.splitlines()))


def _list(config: Mapping[Any, Any], name: str) -> list[Any]:
    found = config.get(name)
    return found[:_MOST] if isinstance(found, list) else []


def _texts(found: list[Any]) -> Iterator[str]:
    return (each for each in found if isinstance(each, str))


def _fingerprints(lines: Iterable[str]) -> list[str]:
    return [found for line in lines if (found := fingerprint(line)) is not None]


def _printable(text: str) -> str:
    """Return a text that fits into a line of a console."""
    plain = "".join("?" if unicodedata.category(letter).startswith("C") else letter for letter in text[:_LONGEST])
    return f"{plain}…" if len(text) > _LONGEST else plain
