"""The processes of a control plane: what each is told on its command line, and where it answers.

Every path is relative to the plane's directory, in which the processes run. All three speak TLS with the plane's
one server certificate, and let in the plane's clients only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Component = Literal["etcd", "apiserver", "controller-manager"]
COMPONENTS: tuple[Component, ...] = get_args(Component)  # each needs the ones before it

HEALTH_PATH: Mapping[Component, str] = {"etcd": "/readyz", "apiserver": "/readyz", "controller-manager": "/healthz"}
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",  # else the roles admin, edit and view would be empty
)


@dataclass(frozen=True)
class Layout:
    """All that the command lines depend on."""

    programs: Path
    ports: Mapping[Component, int]
    fsync: bool
    apiserver_args: Sequence[str]

    def url(self, component: Component) -> str:
        return f"https://127.0.0.1:{self.ports[component]}"

    def command(self, component: Component) -> list[str]:
        match component:
            case "etcd":
                return [str(self.programs / "etcd"), *self._etcd()]
            case "apiserver":
                return [str(self.programs / "kube-apiserver"), *self._apiserver(), *self.apiserver_args]
            case "controller-manager":
                return [str(self.programs / "kube-controller-manager"), *self._controller_manager()]

    def _etcd(self) -> list[str]:
        peer = "http://127.0.0.1:0"  # there are no peers, but etcd insists on an address for them
        durability = [] if self.fsync else ["--unsafe-no-fsync"]
        return [
            "--name=plane",
            "--data-dir=etcd",
            "--log-level=warn",
            f"--listen-client-urls={self.url('etcd')}",
            f"--advertise-client-urls={self.url('etcd')}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=plane={peer}",
            "--cert-file=pki/server.crt",
            "--key-file=pki/server.key",
            "--client-cert-auth",
            "--trusted-ca-file=pki/ca.crt",
            *durability,
        ]

    def _apiserver(self) -> list[str]:
        return [
            *self._serving("apiserver"),
            "--advertise-address=127.0.0.1",
            f"--etcd-servers={self.url('etcd')}",
            "--etcd-cafile=pki/ca.crt",
            "--etcd-certfile=pki/admin.crt",
            "--etcd-keyfile=pki/admin.key",
            "--client-ca-file=pki/ca.crt",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-signing-key-file=pki/service-account.key",
            "--service-account-key-file=pki/service-account.pub",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",  # endpoints may not be loopback addresses, and ours is one
            "--shutdown-watch-termination-grace-period=5s",  # an open watch would hold up SIGTERM for a minute
        ]

    def _controller_manager(self) -> list[str]:
        return [
            *self._serving("controller-manager"),
            "--kubeconfig=controller-manager.kubeconfig",
            "--root-ca-file=pki/ca.crt",
            "--service-account-private-key-file=pki/service-account.key",
            "--use-service-account-credentials",  # RBAC grants each controller's permissions to its own account
            "--leader-elect=false",  # a killed one would have to wait for its own lease to run out
            f"--controllers={','.join(CONTROLLERS)}",
        ]

    def _serving(self, component: Component) -> list[str]:
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports[component]}",
            "--tls-cert-file=pki/server.crt",
            "--tls-private-key-file=pki/server.key",
        ]
