"""Codec: objects to stored documents, which are the JSON of custom resources, and back.

Secrets are sealed when a document is written and opened when it is read, bound to the kind and name of their object.
Updates preserve unknown fields by a three-way merge of the *stored* document, the part of it that our types
*understood*, and the *desired* document. Lists are replaced as a whole unless they have a declared key: then they are
merged by item.
"""

from collections.abc import Mapping
from typing import Any, Generic

import msgspec

from remuda.kernel.errors import Unreadable
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.store.kinds import KeyTree, Kind, Registry
from remuda.store.objects import Resource, ResourceT

_NO_KEYS = KeyTree()


def merge(stored: Any, understood: Any, desired: Any, *, keys: KeyTree = _NO_KEYS) -> Any:
    """Return `stored` with the difference between `understood` and `desired` applied to it."""
    if understood == desired:
        return stored
    if isinstance(stored, dict) and isinstance(understood, dict) and isinstance(desired, dict):
        return _merge_maps(stored, understood, desired, keys)
    if keys.key and isinstance(stored, list) and isinstance(desired, list):
        return _merge_items(stored, understood or [], desired, keys)
    return desired


def _merge_maps(
    stored: Mapping[str, Any], understood: Mapping[str, Any], desired: Mapping[str, Any], keys: KeyTree
) -> dict[str, Any]:
    kept = {name: value for name, value in stored.items() if name in desired or name not in understood}
    for name, value in desired.items():
        below = keys.below.get(name) or keys.each or _NO_KEYS
        if name in stored:
            kept[name] = merge(stored[name], understood.get(name), value, keys=below)
        else:
            kept[name] = value
    return kept


def _merge_items(stored: list[Any], understood: list[Any], desired: list[Any], keys: KeyTree) -> list[Any]:
    assert keys.key is not None
    inner = KeyTree(below=keys.below, each=keys.each)
    stored_by_key = {item.get(keys.key): item for item in stored}
    understood_by_key = {item.get(keys.key): item for item in understood}
    merged = []
    for item in desired:
        name = item.get(keys.key)
        if name in stored_by_key and name in understood_by_key:
            merged.append(merge(stored_by_key[name], understood_by_key[name], item, keys=inner))
        else:
            merged.append(item)
    return merged


class Codec(Generic[ResourceT]):
    """Encodes and decodes the documents of one kind."""

    def __init__(self, kind: Kind[ResourceT], sealer: Sealer) -> None:
        self._kind, self._sealer = kind, sealer
        self._prefix = msgspec.json.encode({"apiVersion": kind.api_version, "kind": kind.name})[:-1] + b","
        self._plain_encoder = msgspec.json.Encoder()
        self._plain_decoder = msgspec.json.Decoder(kind.type)

    def encode(self, resource: ResourceT) -> bytes:
        """Return the document of an object whose stored document, if any, has no unknown fields."""
        return self._encode(resource, {})

    def _encode(self, resource: ResourceT, seals: Mapping[Secret, str]) -> bytes:
        """Encode an object, with the given sealed texts where a secret has one."""
        encoder = self._sealing_encoder(resource.name, seals) if self._kind.has_secrets else self._plain_encoder
        return self._prefix + encoder.encode(resource)[1:]

    def decode(self, document: bytes, name: str) -> ResourceT:
        """Return the object, or raise Unreadable if the document does not match the kind."""
        return self._decode(document, name, {})

    def _decode(self, document: bytes, name: str, seals: dict[Secret, str]) -> ResourceT:
        """Decode a document, and add the sealed text of each secret to `seals`."""
        decoder = self._opening_decoder(name, seals) if self._kind.has_secrets else self._plain_decoder
        try:
            return decoder.decode(document)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unreadable(self._kind.name, name, cause=_without_values(error)) from None

    def decode_named(self, document: bytes | msgspec.Raw) -> ResourceT:
        name = msgspec.json.decode(document, type=_Named).metadata.name
        return self.decode(bytes(document), name)

    def encode_over(self, stored: bytes, resource: ResourceT) -> bytes:
        """Return the document of `resource` together with all unknown fields of `stored`."""
        seals: dict[Secret, str] = {}
        known = _spelled_out(self._decode(stored, resource.name, seals))
        # The understood part keeps its seals, so that a seal of an earlier key counts as a change and is replaced.
        understood = msgspec.json.decode(self._encode(known, seals))
        desired = msgspec.json.decode(self.encode(_spelled_out(resource)))
        return msgspec.json.encode(merge(msgspec.json.decode(stored), understood, desired, keys=self._kind.list_keys))

    def is_sealed_by_an_earlier_key(self, document: bytes, name: str) -> bool:
        """Return whether a stored secret would be sealed differently now."""
        seals: dict[Secret, str] = {}
        self._decode(document, name, seals)
        context = self._context(name)
        return any(self._sealer.seal(secret, context=context) != sealed for secret, sealed in seals.items())

    def _context(self, name: str) -> str:
        return f"{self._kind.qualified}/{name}"

    def _sealing_encoder(self, name: str, seals: Mapping[Secret, str]) -> msgspec.json.Encoder:
        context = self._context(name)

        def seal(value: Any) -> str:
            if isinstance(value, Secret):
                return seals.get(value) or self._sealer.seal(value, context=context)
            raise NotImplementedError(f"{type(value).__name__} cannot be stored")

        return msgspec.json.Encoder(enc_hook=seal)

    def _opening_decoder(self, name: str, seals: dict[Secret, str]) -> msgspec.json.Decoder[ResourceT]:
        context = self._context(name)

        def unseal(_: type, value: Any) -> Secret:
            secret = self._sealer.open(value, context=context)
            seals[secret] = value
            return secret

        return msgspec.json.Decoder(self._kind.type, dec_hook=unseal)


class _NamedMetadata(msgspec.Struct, frozen=True):
    name: str


class _Named(msgspec.Struct, frozen=True):
    metadata: _NamedMetadata


def codecs(registry: Registry, sealer: Sealer) -> Mapping[type[Resource], Codec[Any]]:
    return {kind.type: Codec(kind, sealer) for kind in registry.kinds}


def _without_values(error: Exception) -> str:
    """Return the JSON path and the expectation of a decoding error, never the value."""
    text = str(error)
    return text if isinstance(error, msgspec.ValidationError) and "Invalid" not in text else "it is not valid JSON"


def _spelled_out(value: Any) -> Any:
    """Copy every struct inside. One that equals its field's default would be omitted, and its unknown fields lost."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _spelled_out(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, tuple):
        return tuple(map(_spelled_out, value))
    if isinstance(value, Mapping):
        return {name: _spelled_out(item) for name, item in value.items()}
    return value
