"""Kinds of the Kubernetes backend: journals, and the custom resource definitions of all kinds."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from remuda.store.kinds import Index, Kind, Registry
from remuda.store.objects import Resource, StoredStruct


class JournalEntry(StoredStruct, frozen=True):
    """One record. `data` is JSON as text, because its structure is not declared."""

    position: int
    time: datetime
    data: str


class JournalSpec(StoredStruct, frozen=True):
    """The newest records of a subject, oldest first."""

    stream: str
    subject: str
    entries: tuple[JournalEntry, ...] = ()


class Journal(Resource, frozen=True):
    """The records of one subject in one stream."""

    spec: JournalSpec


JOURNAL = Kind(
    type=Journal,
    group="store.remuda",
    version="v1alpha1",
    plural="journals",
    indexes=(Index(name="stream", values=lambda journal: [journal.spec.stream]),),
    columns={"Stream": ".spec.stream", "Subject": ".spec.subject"},
)
"""The kind of journals, which is in every registry of this backend."""


_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def definitions(registry: Registry) -> Iterator[Mapping[str, Any]]:
    """Return the definitions of all kinds, and of the backend's own."""
    return (definition(kind) for kind in (*registry.kinds, JOURNAL))


def definition(kind: Kind[Any]) -> Mapping[str, Any]:
    columns = [{"name": title, "type": "string", "jsonPath": path} for title, path in kind.columns.items()]
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [*columns, _AGE],
        "schema": {"openAPIV3Schema": kind.schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
            },
            "versions": [version],
        },
    }
