"""How a cluster is reached: a kubeconfig as text, with everything in it.

It comes out of a store, so it may run no program and read no file of this machine, whoever wrote it. What is wrong with
it is told without a word of it.
"""

import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.store.kubernetes.client import Source


def source_of(kubeconfig: Secret) -> Source:
    """Return what says where the cluster is and who we are to it, or raise Unavailable when it is asked."""
    return lambda: _read(kubeconfig)


def _read(kubeconfig: Secret) -> SingleConfig:
    try:
        found = KubeConfig.from_dict(yaml.safe_load(kubeconfig.reveal())).get()
    except Exception:  # noqa: BLE001  YAML and its readers quote what they do not like, which is a secret
        found = None
    if found is None or found.user is None:
        raise _unusable("it is no kubeconfig with a current context and a user")
    if _refers_outside(found):
        raise _unusable("it runs a program or names a file, rather than to have everything in it")
    return found


def _refers_outside(config: SingleConfig) -> bool:
    user, cluster = config.user, config.cluster
    assert user is not None, "it was looked for"
    outside = (user.exec, user.auth_provider, user.token_file, user.client_cert, user.client_key)
    return any(outside) or bool(cluster.certificate_auth)


def _unusable(why: str) -> Unavailable:
    return Unavailable(f"The kubeconfig of the cluster cannot be used ({why}): have another one configured.")
