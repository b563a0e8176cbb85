"""A real OpenStack on 127.0.0.1, alive as long as the process that started it, with its data in one directory.

    with Plane(tmp_path) as plane:
        use(plane.clouds_file)

Keystone, Glance, Placement, Nova, Neutron, Cinder and Octavia are real, with MariaDB and RabbitMQ; the hypervisor,
the network agents, the volumes and the load balancers' machines are simulated. A plane that was stopped can be started
again over the same directory. Nothing it starts outlives this process. Its programs log into DIR/log.
"""

import json
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Self

from tests.kit.child_processes import Process
from tests.openstack.plane import components, programs
from tests.openstack.plane.components import Component
from tests.openstack.plane.configuration import CATALOG, COMPUTE_HOSTS, PASSWORD, REGION, Configuration

READY_WITHIN_S = 180
STOPPED_WITHIN_S = 20
POLL_S = 0.1
LOG_TAIL_LINES = 25
DATABASES = ("keystone", "glance", "placement", "nova_api", "nova_cell0", "nova_cell1", "neutron", "cinder", "octavia")
FOUNDATIONS = ("mariadb", "epmd", "rabbitmq", "keystone")
SEED = Path(__file__).with_name("seed.py")


class PlaneError(RuntimeError):
    """A component did not do what it was told; the message ends with the tail of its log."""


class Plane:
    """One OpenStack. `start`, `stop`, `kill` and `launch` return when it is so."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.clouds_file = self.directory / "clouds.yaml"
        self._running: dict[str, tuple[Component, Process]] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @cached_property
    def configuration(self) -> Configuration:
        return Configuration(programs.ensure(), self.directory)

    def start(self) -> None:
        """Bring up all of it, or leave nothing running. Nothing happens if it runs."""
        if self._running:
            return
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all of it, the newest first. Harmless when nothing runs."""
        for name, (_, process) in self._running.items():
            if name not in FOUNDATIONS:  # they end side by side, while what they use still runs
                process.child.send_signal(signal.SIGTERM)
        for name in reversed(list(self._running)):
            self.kill(name, signal.SIGTERM)

    def kill(self, name: str, sign: signal.Signals = signal.SIGKILL) -> Component | None:
        """End a component and leave it down; return it, so that it can be launched again."""
        found = self._running.pop(name, None)
        if found is None:
            return None
        component, process = found
        process.end(sign, STOPPED_WITHIN_S)
        return component

    def restart(self, name: str, sign: signal.Signals = signal.SIGKILL, pause_s: float = 0) -> None:
        """End a component, leave it down for a while, and return when it is ready again."""
        component = self.kill(name, sign)
        if component is None:
            raise PlaneError(f"{name} does not run")
        time.sleep(pause_s)
        self.launch([component])

    def launch(self, launched: Sequence[Component]) -> None:
        """Start components that are down, and return when they are ready."""
        for component in launched:
            environment = self.configuration.programs.environment() | self._locations | dict(component.environment)
            self._log(component.name).unlink(missing_ok=True)
            process = Process.start(component.command, self.configuration.run, self._log(component.name), environment)
            self._running[component.name] = (component, process)
        for component in launched:
            self._wait_ready(component)

    def _start(self) -> None:
        configuration, started_at = self.configuration, datetime.now(UTC)
        configuration.write(self._created)
        is_new = not self._created
        busy = [name for name, port in configuration.ports.items() if components.accepts(port)]
        if busy:
            raise PlaneError(
                f"Other processes listen on the ports of {', '.join(busy)} in {self.directory}/ports.json."
            )
        if is_new:
            self._install_database()
        self.launch([components.mariadb(configuration), components.epmd(configuration)])
        with ThreadPoolExecutor() as pool:
            broker = pool.submit(self.launch, [components.rabbitmq(configuration)])
            if is_new:
                self._create_databases(pool)
            else:
                self.launch([components.keystone(configuration)])
            broker.result()
        self.launch(components.apis(configuration))
        self.launch([components.conductor(configuration)])
        self.launch(components.workers(configuration))
        self._seed("services", started_at=started_at.strftime("%Y-%m-%dT%H:%M:%S"))
        if is_new:
            self._run(*self._nova_manage("cell_v2", "discover_hosts"))
            created = self._seed("resources")
            self._created_file.write_text(json.dumps(created))  # written last, so it vouches for the rest
            configuration.write(created)
        self.launch([components.octavia_worker(configuration)])
        self.clouds_file.write_text(self._clouds())

    @property
    def _created_file(self) -> Path:
        return self.directory / "created.json"

    @property
    def _created(self) -> Mapping[str, str]:
        """Ids of the objects that Octavia needs; empty before the first start has ended."""
        found: Mapping[str, str] = json.loads(self._created_file.read_text()) if self._created_file.exists() else {}
        return found

    @property
    def _locations(self) -> dict[str, str]:
        """Where each service finds its configuration."""
        files = self.configuration.files
        services = ("keystone", "glance", "placement", "nova", "neutron", "cinder", "octavia")
        directories = {f"OS_{name.upper()}_CONFIG_DIR": str(files / name) for name in services}
        return {"HOME": str(self.configuration.run), "OS_NEUTRON_CONFIG_FILES": "neutron.conf;ml2.conf"} | directories

    def _install_database(self) -> None:
        configuration = self.configuration
        self._run(
            configuration.programs.system("mariadb-install-db"),
            "--no-defaults",
            f"--basedir={configuration.programs.debian}/usr",
            f"--datadir={configuration.data}/mariadb",
            "--user=root",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )

    def _create_databases(self, pool: ThreadPoolExecutor) -> None:
        """Create the schemas of all services side by side, and Keystone's first content."""
        configuration, run = self.configuration, self.configuration.run
        create = "; ".join(f"create database if not exists {name}" for name in DATABASES)
        client = configuration.programs.system("mariadb")
        self._run(client, "--no-defaults", "--user=root", f"--socket={run}/mariadb.sock", "--execute", create)
        self._create_octavia_authority()
        others: list[Future[str]] = [pool.submit(self._create_nova_databases)]
        keystone = configuration.path("keystone")
        manage = (configuration.programs.python("keystone-manage"), "--config-file", str(keystone))
        owner = ("--keystone-user", "root", "--keystone-group", "root")
        urls = [f"--bootstrap-{each}-url={configuration.auth_url}" for each in ("public", "internal", "admin")]
        self._run(*manage, "db_sync")
        self._run(*manage, "fernet_setup", *owner)
        self._run(*manage, "credential_setup", *owner)
        self._run(*manage, "bootstrap", f"--bootstrap-password={PASSWORD}", f"--bootstrap-region-id={REGION}", *urls)
        others += [pool.submit(self._run, *command) for command in self._migrations()]
        self.launch([components.keystone(configuration)])
        self._seed("identities")
        for each in others:
            each.result()

    def _migrations(self) -> Sequence[Sequence[str]]:
        configuration = self.configuration
        python, path = configuration.programs.python, configuration.path
        neutron = ["--config-file", str(path("neutron")), "--config-file", str(path("neutron", "ml2.conf"))]
        return [
            [python("neutron-db-manage"), *neutron, "upgrade", "heads"],
            [python("glance-manage"), "--config-file", str(path("glance", "glance-api.conf")), "db_sync"],
            [python("placement-manage"), "--config-file", str(path("placement")), "db", "sync"],
            [python("cinder-manage"), "--config-file", str(path("cinder")), "db", "sync"],
            [python("octavia-db-manage"), "--config-file", str(path("octavia")), "upgrade", "head"],
        ]

    def _create_nova_databases(self) -> str:
        cell = str(self.configuration.database("nova_cell0")["connection"])
        self._run(*self._nova_manage("api_db", "sync"))
        self._run(*self._nova_manage("cell_v2", "map_cell0", "--database_connection", cell))
        self._run(*self._nova_manage("db", "sync"))
        return self._run(*self._nova_manage("cell_v2", "create_cell", "--name", "cell1"))

    def _nova_manage(self, *words: str) -> Sequence[str]:
        configuration = self.configuration
        return [configuration.programs.python("nova-manage"), "--config-file", str(configuration.path("nova")), *words]

    def _create_octavia_authority(self) -> None:
        directory = self.configuration.data / "octavia"
        request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=octavia"]
        key, certificate = directory / "ca.key", directory / "ca.pem"
        self._run("openssl", *request, "-keyout", str(key), "-out", str(certificate))
        (directory / "client.pem").write_text(certificate.read_text() + key.read_text())

    def _seed(self, step: str, **facts: object) -> Mapping[str, str]:
        configuration = self.configuration
        known = {
            "auth_url": configuration.auth_url,
            "password": PASSWORD,
            "region": REGION,
            "hosts": COMPUTE_HOSTS,
            "catalog": [(name, kind, configuration.endpoint(name)) for name, (kind, _) in CATALOG.items()],
        }
        command = [configuration.programs.python("python"), str(SEED), step]
        output = self._run(*command, text=json.dumps(known | facts))
        created: Mapping[str, str] = json.loads(output)
        return created

    def _run(self, *command: str, text: str = "") -> str:
        """Run a command to its end; return what it printed, or raise with the end of its messages."""
        environment = self.configuration.programs.environment() | self._locations
        result = subprocess.run(
            command,
            cwd=self.configuration.run,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            tail = (result.stdout + result.stderr).splitlines()[-LOG_TAIL_LINES:]
            raise PlaneError("\n".join([f"{' '.join(command)} failed:", *tail]))
        return result.stdout

    def _wait_ready(self, component: Component) -> None:
        log = self._log(component.name)
        process = self._running[component.name][1]
        deadline = time.monotonic() + READY_WITHIN_S
        while not component.is_ready(log.read_text(errors="replace")):
            if not process.alive or time.monotonic() > deadline:
                fate = "did not become ready" if process.alive else "ended by itself"
                tail = log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
                raise PlaneError("\n".join([f"{component.name} {fate}; the end of {log}:", *tail]))
            time.sleep(POLL_S)

    def _log(self, name: str) -> Path:
        return self.configuration.log / f"{name}.log"

    def _clouds(self) -> str:
        """Return a clouds.yaml with the administrator and with the domain manager that a region is given."""
        admin = {"username": "admin", "password": PASSWORD, "user_domain_id": "default"}
        manager = {"username": "manager", "password": PASSWORD, "user_domain_name": "managed"}
        scopes = {
            "admin": admin | {"project_name": "admin", "project_domain_id": "default"},
            "managed": manager | {"domain_name": "managed"},
        }
        clouds = {
            name: {"region_name": REGION, "auth": {"auth_url": self.configuration.auth_url, **auth}}
            for name, auth in scopes.items()
        }
        return json.dumps({"clouds": clouds}, indent=2)
