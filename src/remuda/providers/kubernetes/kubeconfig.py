"""Kubeconfig of a cluster, given as text with all credentials inline.

It comes from the store, so it must not run a program or read a file of this machine. Error messages quote nothing of
it.
"""

import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.store.kubernetes.client import Source


def source_of(kubeconfig: Secret) -> Source:
    """Return a source of the cluster's address and credentials, which raises Unavailable if they are unusable."""
    return lambda: _read(kubeconfig)


def _read(kubeconfig: Secret) -> SingleConfig:
    try:
        found = KubeConfig.from_dict(yaml.safe_load(kubeconfig.reveal())).get()
    except Exception:  # noqa: BLE001  errors of YAML and its readers quote the text, which is a secret
        found = None
    if found is None or found.user is None:
        raise _unusable("it is not a kubeconfig with a current context and a user")
    if _refers_outside(found):
        raise _unusable("it runs a program or refers to a file instead of containing all credentials")
    return found


def _refers_outside(config: SingleConfig) -> bool:
    user, cluster = config.user, config.cluster
    assert user is not None, "_read checked it"
    outside = (user.exec, user.auth_provider, user.token_file, user.client_cert, user.client_key)
    return any(outside) or bool(cluster.certificate_auth)


def _unusable(why: str) -> Unavailable:
    return Unavailable(
        f"The kubeconfig of the cluster cannot be used ({why}). Ask the operator to configure another one."
    )
