"""The shape every stored object shares: Kubernetes-style JSON as frozen structs.

An object is *metadata* (who it is), *spec* (what is wanted) and *status* (what is). The stored JSON is the JSON of the
matching custom resource, so the same bytes live in SQLite and in a Kubernetes API server. Objects are values: change
one with `msgspec.structs.replace` and hand the result to the store.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

FOREGROUND = "foregroundDeletion"
"""The finalizer of a marked owner that still has children. Kubernetes chose the name; we keep it."""

IN_USE = "remuda/in-use"
"""The finalizer of everything that can be referenced. The store sets it, and takes it off when nobody refers."""

HAS_CHILDREN = "remuda/has-children"
"""The finalizer of a marked owner whose children we know of, on a backend whose own collector may not yet."""

OURS = frozenset({FOREGROUND, IN_USE, HAS_CHILDREN})
"""The finalizers that only the store sets and takes off."""


class StoredStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base of everything inside a stored document: frozen, camelCase on disk, defaults left out."""


class OwnerReference(StoredStruct, frozen=True):
    """Names the object this one belongs to and goes with. The uid pins the incarnation, not only the name."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False
    """Always true in ours: the owner goes last. Kubernetes takes it for false where it is left out."""


class Metadata(StoredStruct, frozen=True):
    """Who an object is. Everything below `name` that a caller may not set is filled in by the store."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Resource(StoredStruct, frozen=True):
    """The base of every kind. A kind adds `spec: …` and `status: … = …Status()`."""

    metadata: Metadata

    @property
    def name(self) -> str:
        """The id: unique within its kind."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The incarnation: an object made again under an old name has another."""
        return self.metadata.uid

    @property
    def version(self) -> str:
        """The version that was read: the precondition of the next write."""
        return self.metadata.resource_version

    @property
    def is_marked(self) -> bool:
        """Deletion was requested; the object goes when its last finalizer goes."""
        return self.metadata.deletion_timestamp is not None


ResourceT = TypeVar("ResourceT", bound=Resource)
"""Some kind's type: what goes in as a horse comes out as a horse."""
