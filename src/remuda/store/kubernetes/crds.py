"""Custom resource definitions, made from the kinds."""

from collections.abc import Iterator, Mapping
from typing import Any

from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.kinds import JOURNAL

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def definitions(registry: Registry) -> Iterator[Mapping[str, Any]]:
    """Return the definition of every kind, and of those the backend keeps for itself."""
    return (definition(kind) for kind in (*registry.kinds, JOURNAL))


def definition(kind: Kind[Any]) -> Mapping[str, Any]:
    """Return the CustomResourceDefinition of a kind: structural, with a status subresource."""
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
