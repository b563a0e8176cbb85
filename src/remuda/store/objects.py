"""Stored objects: the structure they all share, Kubernetes-style JSON as frozen structs.

An object has *metadata* (its identity), a *spec* (the desired state) and a *status* (the observed state). Its JSON is
that of the matching custom resource, so SQLite and a Kubernetes API server store the same bytes. Objects are values:
change one with `msgspec.structs.replace` and pass the result to the store.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

FOREGROUND = "foregroundDeletion"
"""The finalizer of an owner that is being deleted and still has children. Kubernetes defines the name."""

IN_USE = "remuda/in-use"
"""The finalizer of every object that can be referenced. The store adds it, and removes it with the last referrer."""

HAS_CHILDREN = "remuda/has-children"
"""The finalizer of an owner that is being deleted, until the children that we know are removed (Kubernetes only)."""

STORE_FINALIZERS = frozenset({FOREGROUND, IN_USE, HAS_CHILDREN})
"""The finalizers that only the store adds and removes."""


class StoredStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base of everything inside a stored document: frozen, camelCase in JSON, defaults omitted."""


class OwnerReference(StoredStruct, frozen=True):
    """The owner of an object, with which it is deleted. The uid identifies the incarnation."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False
    """Always true in ours: the owner is removed last. Kubernetes defaults to false."""


NAME_LABEL = "unikorn-cloud.org/name"
"""Label of the display name."""


class Metadata(StoredStruct, frozen=True):
    """The identity of an object. The store fills in the fields that a caller may not set."""

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
        """The id, unique within the kind."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The incarnation: an object that is created again under the same name has another one."""
        return self.metadata.uid

    @property
    def version(self) -> str:
        return self.metadata.resource_version

    @property
    def is_deleting(self) -> bool:
        """Whether deletion was requested. The object is removed with its last finalizer."""
        return self.metadata.deletion_timestamp is not None


ResourceT = TypeVar("ResourceT", bound=Resource)


def at_version(resource: ResourceT, version: str) -> ResourceT:
    metadata = msgspec.structs.replace(resource.metadata, resource_version=version)
    return msgspec.structs.replace(resource, metadata=metadata)
