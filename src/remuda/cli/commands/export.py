"""``remuda openapi``: the API of a service, for programs that read one.

``remuda crds``: what a Kubernetes API server must know before Remuda can store its objects there.
"""

import msgspec
import yaml

from remuda.app import registry, tables
from remuda.cli.output import show
from remuda.http.openapi import document
from remuda.kernel.errors import Invalid
from remuda.store.kubernetes.kinds import definitions
from remuda.version import describe


def crds() -> None:
    """Print the custom resource definitions of all kinds, as YAML for ``kubectl apply -f -``."""
    show(yaml.safe_dump_all(definitions(registry()), sort_keys=False))


def openapi(service: str, /) -> None:
    """Print the OpenAPI 3.1 document of a service, as JSON.

    Parameters
    ----------
    service
        The service's name, or `process` for what a process says about itself.

    """
    known = tables()
    if service not in known:
        remedy = f"use one of {', '.join(sorted(known))}" if known else "this release has none yet"
        raise Invalid(f"The service {service}", "is not known", remedy=remedy)
    found = known[service]
    made = document(found.table, version=describe().version, server=found.prefix or "/")
    show(f"{msgspec.json.format(msgspec.json.encode(made)).decode()}\n")
