"""Commands ``remuda crds`` and ``remuda openapi``, which print formats for other programs."""

import msgspec
import yaml

from remuda.app import registry, tables
from remuda.cli.output import write
from remuda.http.components import JsonObject
from remuda.http.merged_document import merged_document
from remuda.http.openapi import document
from remuda.kernel.errors import Invalid
from remuda.store.kubernetes.kinds import definitions
from remuda.version import describe


def crds() -> None:
    """Print the custom resource definitions for a Kubernetes API server.

    Example::

        remuda crds | kubectl apply -f -
    """
    write(yaml.safe_dump_all(definitions(registry()), sort_keys=False))


def openapi(service: str | None = None, /) -> None:
    """Print the OpenAPI 3.1 document of all services, or of one.

    Example::

        remuda openapi > remuda.json
        remuda openapi compute > compute.json

    :param service: Name of the service, or process for the endpoints of the process itself.
    """
    known = tables()
    if service is None:
        _print(merged_document(known.values(), version=describe().version))
        return
    if service not in known:
        remedy = f"use one of {', '.join(sorted(known))}" if known else "this release has no services"
        raise Invalid(f"The service {service}", "does not exist", remedy=remedy)
    found = known[service]
    _print(document(found.table, version=describe().version, server=found.prefix or "/"))


def _print(content: JsonObject) -> None:
    write(f"{msgspec.json.format(msgspec.json.encode(content)).decode()}\n")
