"""A real Kubernetes API on 127.0.0.1, alive as long as the process that started it, and its data in one directory.

    with Plane(tmp_path) as plane:
        use(plane.kubeconfig)

A plane that was stopped can be started again over the same directory: it comes back with its data, certificates and
ports. Nothing it starts outlives this process, however that ends. Its programs log into DIR/log.
"""

import http.client
import json
import signal
import ssl
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tests.kit.child_processes import Process, free_ports
from tests.kubernetes.plane import programs
from tests.kubernetes.plane.certificates import Authority, Identity, bearer, embedded, write_kubeconfig
from tests.kubernetes.plane.components import COMPONENTS, HEALTH_PATH, Component, Layout

HEALTHY_WITHIN_S = 60
STOPPED_WITHIN_S = 30
THROTTLED_WITHIN_S = 60
POLL_S = 0.05
LOG_TAIL_LINES = 15


class PlaneError(RuntimeError):
    """A component did not do what it was told; the message ends with the tail of its log."""


class Plane:
    """One etcd, one API server, one controller manager. `start`, `stop` and `restart` return when it is so."""

    def __init__(self, directory: Path, *, fsync: bool = True, apiserver_args: Sequence[str] = ()) -> None:
        self.directory = directory.resolve()
        self.pki = self.directory / "pki"
        self.kubeconfig = self.directory / "kubeconfig"
        self._fsync = fsync
        self._apiserver_args = tuple(apiserver_args)
        self._processes: dict[Component, Process] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return self._layout.url("apiserver")

    def pid(self, component: Component) -> int:
        return self._processes[component].pid

    def start(self) -> None:
        """Bring up all of it, or leave nothing running."""
        try:
            for component in COMPONENTS:
                self.launch(component)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all of it, politely if it listens. Harmless when nothing runs."""
        for component in reversed(COMPONENTS):
            self.kill(component, signal.SIGTERM)

    def restart(self, component: Component, sign: signal.Signals = signal.SIGKILL, pause_s: float = 0) -> None:
        """End a component, leave it down for a while, and return when the plane is healthy again."""
        self.kill(component, sign)
        time.sleep(pause_s)
        self.launch(component)
        for running in COMPONENTS:
            if running in self._processes:
                self._wait_healthy(running)

    def kill(self, component: Component, sign: signal.Signals = signal.SIGKILL) -> None:
        """End a component and leave it down."""
        process = self._processes.pop(component, None)
        if process is not None:
            process.end(sign, STOPPED_WITHIN_S)

    def launch(self, component: Component) -> None:
        """Start a component that is down, and return when it is healthy."""
        if component in self._processes:
            raise PlaneError(f"{component} runs already")
        if self._healthy(component):
            raise PlaneError(f"another process serves {self.directory} at {self._layout.url(component)}")
        self._processes[component] = Process.start(
            self._layout.command(component), self.directory, self._log(component)
        )
        self._wait_healthy(component)

    def issue_kubeconfig(self, path: Path, user: Identity | str) -> Path:
        """Write a kubeconfig for this plane that logs in with a certificate or, given a string, a token."""
        login = bearer(user) if isinstance(user, str) else embedded(user)
        return write_kubeconfig(path, self.url, self.authority.pem, login)

    @property
    def authority(self) -> Authority:
        return Authority.load(self.pki)

    def admin_request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request as the admin; return the status, and the answer as JSON or else as text.

        A kind that was just defined, or whose cache fills after a restart, answers 429 for a moment: we wait for it.
        """
        deadline = time.monotonic() + THROTTLED_WITHIN_S
        while True:
            status, retry_after, answer = self._request("apiserver", method, path, body)
            if status != http.client.TOO_MANY_REQUESTS or time.monotonic() > deadline:
                return status, answer
            time.sleep(retry_after)

    def _request(self, component: Component, method: str, path: str, body: Any) -> tuple[int, float, Any]:
        port = self._layout.ports[component]
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=self._admin_tls)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": content_type(method, body)})
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.headers.get_content_type() == "application/json"
            return response.status, float(response.headers.get("Retry-After", 1)), json.loads(text) if is_json else text
        finally:
            connection.close()

    def _healthy(self, component: Component) -> bool:
        try:
            status, _, _ = self._request(component, "GET", HEALTH_PATH[component], None)
        except (OSError, http.client.HTTPException):
            return False
        return status == http.client.OK

    def _wait_healthy(self, component: Component) -> None:
        process = self._processes[component]
        deadline = time.monotonic() + HEALTHY_WITHIN_S
        while not self._healthy(component):
            if not process.alive or time.monotonic() > deadline:
                fate = "did not become healthy" if process.alive else "ended by itself"
                tail = self._log(component).read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
                raise PlaneError("\n".join([f"{component} {fate}; the end of {self._log(component)}:", *tail]))
            time.sleep(POLL_S)

    def _log(self, component: Component) -> Path:
        return self.directory / "log" / f"{component}.log"

    @cached_property
    def _admin_tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        context.load_cert_chain(self.pki / "admin.crt", self.pki / "admin.key")
        return context

    @cached_property
    def _layout(self) -> Layout:
        """Prepare the directory, or take up what an earlier plane left in it."""
        ports_file = self.directory / "ports.json"
        if not ports_file.exists():  # it is written last, so it vouches for the rest
            (self.directory / "log").mkdir(parents=True, exist_ok=True)
            ports = dict(zip(COMPONENTS, free_ports(len(COMPONENTS)), strict=True))
            server = f"https://127.0.0.1:{ports['apiserver']}"
            ca = Authority.create(self.pki).pem
            for name, path in (("admin", self.kubeconfig), ("controller-manager", self._controller_kubeconfig)):
                write_kubeconfig(path, server, ca, embedded(Identity.read(self.pki, name)))
            ports_file.write_text(json.dumps(ports))
        return Layout(programs.ensure(), json.loads(ports_file.read_text()), self._fsync, self._apiserver_args)

    @property
    def _controller_kubeconfig(self) -> Path:
        return self.directory / "controller-manager.kubeconfig"


def content_type(method: str, body: Any) -> str:
    if method != "PATCH":
        return "application/json"
    return "application/json-patch+json" if isinstance(body, list) else "application/merge-patch+json"
