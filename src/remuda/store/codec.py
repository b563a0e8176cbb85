"""Between objects and their stored bytes.

A document is the JSON of a custom resource. Secrets are sealed on the way in and opened on the way out, bound to the
kind and name they belong to, so no backend ever holds one in the clear.

Writing what we know without losing what we do not.

A write is a three-way merge: the *stored* document, what our types *understood* of it, and what is *wanted* now. What
was understood and is no longer wanted goes; what is wanted is set; what was never understood stays. Lists are replaced
whole unless they have a declared key, in which case their items are merged one by one.
"""

from collections.abc import Mapping
from typing import Any, Generic

import msgspec

from remuda.kernel.errors import Unreadable
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.store.kinds import KeyTree, Kind, Registry
from remuda.store.objects import Resource, ResourceT

_NOWHERE = KeyTree()


def merge(stored: Any, understood: Any, wanted: Any, *, keys: KeyTree = _NOWHERE) -> Any:
    """Return `stored` with the difference between `understood` and `wanted` applied to it."""
    if understood == wanted:
        return stored
    if isinstance(stored, dict) and isinstance(understood, dict) and isinstance(wanted, dict):
        return _merge_maps(stored, understood, wanted, keys)
    if keys.key and isinstance(stored, list) and isinstance(wanted, list):
        return _merge_items(stored, understood or [], wanted, keys)
    return wanted


def _merge_maps(
    stored: Mapping[str, Any], understood: Mapping[str, Any], wanted: Mapping[str, Any], keys: KeyTree
) -> dict[str, Any]:
    kept = {name: value for name, value in stored.items() if name in wanted or name not in understood}
    for name, value in wanted.items():
        below = keys.below.get(name) or keys.each or _NOWHERE
        if name in stored:
            kept[name] = merge(stored[name], understood.get(name), value, keys=below)
        else:
            kept[name] = value
    return kept


def _merge_items(stored: list[Any], understood: list[Any], wanted: list[Any], keys: KeyTree) -> list[Any]:
    assert keys.key is not None
    inner = KeyTree(below=keys.below, each=keys.each)
    stored_by_key = {item.get(keys.key): item for item in stored}
    understood_by_key = {item.get(keys.key): item for item in understood}
    merged = []
    for item in wanted:
        name = item.get(keys.key)
        if name in stored_by_key and name in understood_by_key:
            merged.append(merge(stored_by_key[name], understood_by_key[name], item, keys=inner))
        else:
            merged.append(item)
    return merged


class Codec(Generic[ResourceT]):
    """Writes and reads the documents of one kind."""

    def __init__(self, kind: Kind[ResourceT], sealer: Sealer) -> None:
        self._kind = kind
        self._sealer = sealer
        self._prefix = msgspec.json.encode({"apiVersion": kind.api_version, "kind": kind.name})[:-1] + b","
        self._plain_encoder = msgspec.json.Encoder()
        self._plain_decoder = msgspec.json.Decoder(kind.type)

    def encode(self, resource: ResourceT) -> bytes:
        """Return the document of an object about which nothing is stored that we do not know."""
        return self._encode(resource, {})

    def _encode(self, resource: ResourceT, seals: Mapping[Secret, str]) -> bytes:
        """Do so, with these seals where there is one."""
        encoder = self._sealing_encoder(resource.name, seals) if self._kind.has_secrets else self._plain_encoder
        return self._prefix + encoder.encode(resource)[1:]

    def decode(self, document: bytes, name: str) -> ResourceT:
        """Return the object, or raise Unreadable if the document is not of its kind."""
        return self._decode(document, name, {})

    def _decode(self, document: bytes, name: str, seals: dict[Secret, str]) -> ResourceT:
        """Do so, and note the seal of every secret."""
        decoder = self._opening_decoder(name, seals) if self._kind.has_secrets else self._plain_decoder
        try:
            return decoder.decode(document)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unreadable(self._kind.name, name, cause=_without_values(error)) from None

    def decode_named(self, document: bytes | msgspec.Raw) -> ResourceT:
        """Return the object in a document whose name is not known yet."""
        name = msgspec.json.decode(document, type=_Named).metadata.name
        return self.decode(bytes(document), name)

    def encode_over(self, stored: bytes, resource: ResourceT) -> bytes:
        """Return the document of `resource` with everything in `stored` that our types do not know."""
        seals: dict[Secret, str] = {}
        known = _spelled_out(self._decode(stored, resource.name, seals))
        # What is known keeps the seals it has: so a seal of an earlier key is a change, and the current key seals anew.
        understood = msgspec.json.decode(self._encode(known, seals))
        wanted = msgspec.json.decode(self.encode(_spelled_out(resource)))
        return msgspec.json.encode(merge(msgspec.json.decode(stored), understood, wanted, keys=self._kind.list_keys))

    def is_sealed_by_an_earlier_key(self, document: bytes, name: str) -> bool:
        """Tell whether a stored secret would be sealed differently now."""
        seals: dict[Secret, str] = {}
        self._decode(document, name, seals)
        context = self._context(name)
        return any(self._sealer.seal(secret, context=context) != sealed for secret, sealed in seals.items())

    def _context(self, name: str) -> str:
        """What a seal is bound to: the object it belongs to."""
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
    """Return the codec of every kind by its type."""
    return {kind.type: Codec(kind, sealer) for kind in registry.kinds}


def _without_values(error: Exception) -> str:
    """Keep the JSON path of a decoding error and what was expected, never the value."""
    text = str(error)
    return text if isinstance(error, msgspec.ValidationError) and "Invalid" not in text else "it is not valid JSON"


def _spelled_out(value: Any) -> Any:
    """Copy every struct inside: one that is its field's default would be left out, and what lies in it unknown lost."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _spelled_out(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, tuple):
        return tuple(map(_spelled_out, value))
    if isinstance(value, Mapping):
        return {name: _spelled_out(item) for name, item in value.items()}
    return value
