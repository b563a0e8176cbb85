"""``remuda crds``: what a Kubernetes API server must know before Remuda can store its objects there."""

import yaml

from remuda.app import registry
from remuda.cli.output import show
from remuda.store.kubernetes.kinds import definitions


def crds() -> None:
    """Print the custom resource definitions of all kinds, as YAML for ``kubectl apply -f -``."""
    show(yaml.safe_dump_all(definitions(registry()), sort_keys=False))
