"""Kinds: declarations of the types that can be stored, and their schemas.

A kind is a struct type with its group, version and plural in the API, the references of its objects, and its indexes
besides labels. Secret fields and keyed lists are declared in the types (`Secret`, `keyed`). Schemas are structural, as
a Kubernetes API server requires: no `$ref`, one type at each position, `nullable` instead of `null`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple

import msgspec

from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.store.objects import OwnerReference, Resource, ResourceT

Schema = dict[str, Any]
"""A JSON Schema, decoded."""

_ANNOTATIONS = ("title", "default")
_SEALED = "sealed"


def keyed(key: str) -> msgspec.Meta:
    """Annotate a list of structs whose items are identified by `key`: such lists are merged item by item."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})


def structural_schema(kind: type[msgspec.Struct]) -> Schema:
    """Return the structural schema of a struct type, with all references inlined."""
    (root,), definitions = msgspec.json.schema_components([kind], schema_hook=_secret_schema, ref_template="{name}")
    return _inline(root, definitions)


def _secret_schema(kind: type) -> Schema:
    if kind is Secret:
        return {"type": "string", "format": _SEALED}
    raise NotImplementedError(f"{kind.__name__} cannot be stored: give it a JSON form first")


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    if "$ref" in node:
        rest = {name: value for name, value in node.items() if name != "$ref"}
        return _inline(definitions[node["$ref"]], definitions) | _inline(rest, definitions)
    if "anyOf" in node:
        return _nullable(node, definitions)
    done: Schema = {name: value for name, value in node.items() if name not in _ANNOTATIONS}
    if "properties" in node:
        done["properties"] = {name: _inline(child, definitions) for name, child in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            done[name] = _inline(node[name], definitions)
    if done.get("enum") and "type" not in done:
        done["type"] = "string"
    return done


def _nullable(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Return the schema of an optional field: its only other alternative. Absent and null mean the same to us."""
    alternatives = [child for child in node["anyOf"] if child != {"type": "null"}]
    if len(alternatives) != 1:
        raise NotImplementedError("a stored field has one type; a union has no structural schema")
    return _inline(alternatives[0], definitions)


class KeyTree(msgspec.Struct, frozen=True):
    """The keyed lists of a document: at this position, below it by field name, and in each value of a map."""

    key: str | None = None
    below: Mapping[str, "KeyTree"] = {}
    each: "KeyTree | None" = None


_NONE = KeyTree()


def list_keys(schema: Schema) -> KeyTree:
    (key,) = schema.get("x-kubernetes-list-map-keys", [None])
    inner = schema["items"] if key else schema
    below = {name: list_keys(child) for name, child in inner.get("properties", {}).items()}
    values = inner.get("additionalProperties")
    each = list_keys(values) if isinstance(values, dict) else _NONE
    known = {name: tree for name, tree in below.items() if tree != _NONE}
    return KeyTree(key=key, below=known, each=each if each != _NONE else None)


def has_secrets(schema: Schema) -> bool:
    """Return whether documents of this schema have fields that must be sealed."""
    if schema.get("format") == _SEALED:
        return True
    children = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(has_secrets(child) for child in children if isinstance(child, dict))


@dataclass(frozen=True, kw_only=True)
class Reference(Generic[ResourceT]):
    """A reference from objects of this kind to objects of another kind, which blocks the removal of those."""

    target: str
    """The qualified plural of the target kind, such as `networks.region.unikorn-cloud.org`."""
    names: Callable[[ResourceT], Iterable[str]]
    """The names that an object refers to, by its metadata and spec. A status contains no references."""
    revision: int = 1
    """Increase it when `names` changes its meaning: the index is then rebuilt when a store is opened."""


@dataclass(frozen=True, kw_only=True)
class Index(Generic[ResourceT]):
    """An index of objects by something other than a label."""

    name: str
    values: Callable[[ResourceT], Iterable[str]]
    revision: int = 1
    """Increase it when `values` changes its meaning: the index is then rebuilt when a store is opened."""


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[ResourceT]):
    """A stored type and its names in the API."""

    type: type[ResourceT]
    group: str
    version: str
    plural: str
    references: tuple[Reference[ResourceT], ...] = ()
    indexes: tuple[Index[ResourceT], ...] = ()
    unindexed: frozenset[str] = frozenset()
    """Labels by which these objects are never listed. Every indexed label costs an index entry in every write."""
    columns: Mapping[str, str] = field(default_factory=dict)
    counted_in: str | None = None
    """The label of the organization or project in which the number of objects is limited (`ObjectLimits`)."""
    uncounted: str = ""
    """Why the number of objects needs no such limit, for a kind without `counted_in`."""

    @cached_property
    def name(self) -> str:
        return self.type.__name__

    @cached_property
    def qualified(self) -> str:
        """The plural with its group: the name of the kind outside its own types."""
        return f"{self.plural}.{self.group}"

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @cached_property
    def schema(self) -> Schema:
        """The structural schema of the document without its metadata."""
        whole = structural_schema(self.type)
        parts = {name: part for name, part in whole["properties"].items() if name != "metadata"}
        required = [name for name in whole["required"] if name != "metadata"]
        return {"type": "object", "properties": parts} | ({"required": required} if required else {})

    @cached_property
    def list_keys(self) -> KeyTree:
        return list_keys(self.schema)

    @cached_property
    def has_secrets(self) -> bool:
        return has_secrets(self.schema)

    @cached_property
    def signature(self) -> str:
        """The declarations on which the index entries of this kind depend; if it changes, they are rebuilt."""
        indexes = [f"{index.name}:{index.revision}" for index in self.indexes]
        references = [f">{reference.target}:{reference.revision}" for reference in self.references]
        return ",".join([*indexes, *references, *(f"-{label}" for label in sorted(self.unindexed))])

    @cached_property
    def blank_status(self) -> Any:
        for part in msgspec.structs.fields(self.type):
            if part.name == "status":
                return part.default if part.default_factory is msgspec.NODEFAULT else part.default_factory()
        return None

    def owner(self, owner: ResourceT) -> OwnerReference:
        return OwnerReference(
            api_version=self.api_version,
            kind=self.name,
            name=owner.name,
            uid=owner.uid,
            controller=True,
            block_owner_deletion=True,
        )

    def targets(self, resource: ResourceT) -> frozenset[tuple[str, str]]:
        """Return (qualified kind, name) of every object that `resource` refers to."""
        if not self.references:
            return frozenset()
        return frozenset((ref.target, name) for ref in self.references for name in ref.names(resource))

    def is_reindexed(self, resource: ResourceT, previous: ResourceT) -> bool:
        """Return whether a change of an object affects its labels or its values in a declared index."""
        if resource.metadata.labels != previous.metadata.labels:
            return True
        for index in self.indexes:
            now, then = list(index.values(resource)), list(index.values(previous))
            if now != then and set(now) != set(then):
                return True
        return False

    def check(self) -> None:
        """Raise now what the first write would raise: a field cannot be stored, or the status has no default."""
        if self.counted_in in self.unindexed:
            raise TypeError(f"{self.name} is counted by {self.counted_in}, which has no index")
        if self.schema and self.blank_status is msgspec.NODEFAULT:
            raise TypeError(f"{self.name}.status needs a default: a new object has none yet")

    def check_index(self, name: str) -> None:
        """Raise Invalid unless the kind declares this index."""
        declared = [index.name for index in self.indexes]
        if name not in declared:
            remedy = f"use one of {', '.join(declared)}" if declared else "list by labels"
            raise Invalid(f"the index {name}", f"is not declared by {self.name}", remedy=remedy)

    def check_indexed(self, labels: Iterable[str]) -> None:
        """Raise Invalid if the kind has no index for one of these labels."""
        for label in labels:
            if label in self.unindexed:
                remedy = "declare it as indexed, or list by another label"
                raise Invalid(f"the label {label}", f"has no index in {self.name}", remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectLimits:
    """Largest numbers of objects of a kind with one value of its `counted_in`."""

    default: int
    of_kinds: Mapping[str, int] = field(default_factory=dict)
    """By plural, for kinds with another limit than the default."""


class ObjectLimit(NamedTuple):
    """Largest number of objects of a kind with one value of a label."""

    label: str
    value: str
    most: int


class Registry:
    """The kinds of a store. The constructor checks what would otherwise fail at the first write."""

    def __init__(self, kinds: Iterable[Kind[Any]], *, limits: ObjectLimits | None = None) -> None:
        """Take the kinds, and the limits of their numbers of objects; without any, no number is limited."""
        self.kinds: tuple[Kind[Any], ...] = tuple(kinds)
        self.limits = limits
        self._by_type: dict[type[Resource], Kind[Any]] = {kind.type: kind for kind in self.kinds}
        self._by_name: dict[str, Kind[Any]] = {kind.qualified: kind for kind in self.kinds}
        self._by_owner: dict[tuple[str, str], Kind[Any]] = {(k.api_version, k.name): k for k in self.kinds}
        if not len(self.kinds) == len(self._by_type) == len(self._by_name) == len(self._by_owner):
            raise ValueError("a kind is registered twice")
        self._referrers: dict[str, list[Kind[Any]]] = {}
        for kind in self.kinds:
            kind.check()
            for target in {reference.target for reference in kind.references}:
                if target not in self._by_name:
                    raise ValueError(f"{kind.qualified} refers to {target}, which is not registered")
                self._referrers.setdefault(target, []).append(kind)

    def of(self, resource_type: type[ResourceT]) -> Kind[ResourceT]:
        try:
            return self._by_type[resource_type]
        except KeyError:
            raise TypeError(f"{resource_type.__name__} is not a registered kind") from None

    def named(self, qualified: str) -> Kind[Any]:
        return self._by_name[qualified]

    def largest_number(self, kind: Kind[Any]) -> int | None:
        """Return the largest number of objects of a kind in one scope, or None if it is not limited."""
        if self.limits is None or kind.counted_in is None:
            return None
        return self.limits.of_kinds.get(kind.plural, self.limits.default)

    def object_limit(self, kind: Kind[ResourceT], resource: ResourceT) -> ObjectLimit | None:
        """Return the limit against which an object counts, or None if there is none."""
        scope, most = resource.metadata.labels.get(kind.counted_in or ""), self.largest_number(kind)
        if kind.counted_in is None or scope is None or most is None:
            return None
        return ObjectLimit(kind.counted_in, scope, most)

    def owning(self, reference: OwnerReference) -> Kind[Any] | None:
        return self._by_owner.get((reference.api_version, reference.kind))

    def referrers_of(self, kind: Kind[Any]) -> tuple[Kind[Any], ...]:
        return tuple(self._referrers.get(kind.qualified, ()))

    def is_target(self, kind: Kind[Any]) -> bool:
        """Return whether objects of this kind can be referenced: if so, they have the store's finalizer."""
        return kind.qualified in self._referrers
