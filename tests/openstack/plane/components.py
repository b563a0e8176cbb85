"""The processes of an OpenStack: how each is started, and when it is ready."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.openstack.plane.configuration import COMPUTE_HOSTS, Configuration

APPLICATIONS: Mapping[str, str] = {
    "placement": "placement.wsgi.api:application",
    "glance": "glance.wsgi.api:application",
    "neutron": "neutron.wsgi.api:application",
    "nova": "nova.wsgi.osapi_compute:application",
    "cinder": "cinder.wsgi.api:application",
    "octavia": "octavia.wsgi.api:application",
}
SIMULATED_RESOURCES = {"CUSTOM_GPU": 8}
AMQP_HEADER = b"AMQP\0\0\x09\x01"
SERVER_ERROR = 500


@dataclass(frozen=True)
class Component:
    """One process and the check that it is ready."""

    name: str
    command: Sequence[str]
    is_ready: Callable[[str], bool]
    """Given the log of the process, returns whether others can use it."""
    environment: Mapping[str, str] = field(default_factory=dict)


def mariadb(configuration: Configuration) -> Component:
    programs, data = configuration.programs, configuration.data / "mariadb"
    port = configuration.ports["mariadb"]
    command = [
        programs.system("mariadbd"),
        "--no-defaults",
        f"--basedir={programs.debian}/usr",
        f"--lc-messages-dir={programs.debian}/usr/share/mysql",
        "--user=root",
        f"--datadir={data}",
        f"--socket={configuration.run}/mariadb.sock",
        f"--pid-file={configuration.run}/mariadb.pid",
        "--bind-address=127.0.0.1",
        f"--port={port}",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--max-connections=1000",
        "--innodb-flush-log-at-trx-commit=0",  # a power cut may lose all of it: it is made for one run of tests
        "--innodb-doublewrite=0",
        "--innodb-buffer-pool-size=256M",
        "--innodb-log-file-size=48M",
        "--innodb-flush-method=nosync",
        "--performance-schema=OFF",
        "--character-set-server=utf8mb3",
        "--collation-server=utf8mb3_general_ci",
    ]
    return Component("mariadb", command, lambda _: accepts(port))


def epmd(configuration: Configuration) -> Component:
    """Return Erlang's name server, which RabbitMQ would else start itself, to outlive it."""
    port = configuration.ports["epmd"]
    command = [configuration.programs.system("epmd"), "-address", "127.0.0.1", "-port", str(port)]
    return Component("epmd", command, lambda _: accepts(port))


def rabbitmq(configuration: Configuration) -> Component:
    port, data = configuration.ports["rabbitmq"], configuration.data / "rabbitmq"
    file = configuration.path("rabbitmq")
    file.parent.mkdir(parents=True, exist_ok=True)
    settings = {
        "listeners.tcp.1": f"127.0.0.1:{port}",
        "loopback_users": "none",
        "log.file": "false",
        "log.console": "true",
        "log.console.level": "warning",
        "disk_free_limit.absolute": "50MB",
        "vm_memory_high_watermark.absolute": "2GB",
    }
    file.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    environment = {
        "HOME": str(data),
        "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the broker, so that a signal to it reaches the broker
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(file),
        "RABBITMQ_NODENAME": f"remuda{port}@localhost",
        "RABBITMQ_PID_FILE": str(configuration.run / "rabbitmq.pid"),
        "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
        "RABBITMQ_LOG_BASE": str(data / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "enabled_plugins"),
        "RABBITMQ_DIST_PORT": str(configuration.ports["erlang"]),
        "ERL_EPMD_PORT": str(configuration.ports["epmd"]),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
        ),
    }
    command = [configuration.programs.system("rabbitmq-server")]
    return Component("rabbitmq", command, lambda _: accepts(port, AMQP_HEADER), environment)


def keystone(configuration: Configuration) -> Component:
    # Processes, not threads: with threads one of a hundred requests at once gets a 403 that it should not.
    return _api(configuration, "keystone", "keystone.wsgi.api:application", processes=4)


def apis(configuration: Configuration) -> list[Component]:
    """Return the APIs that need Keystone. Each worker imports its application itself, so that no socket is shared."""
    return [
        _api(configuration, name, module, "--lazy-apps", *_own_arguments(configuration, name))
        for name, module in APPLICATIONS.items()
    ]


def _own_arguments(configuration: Configuration, name: str) -> list[str]:
    """Return the options of an application that reads a command line, and no variable, for its configuration."""
    return ["--pyargv", f"--config-file {configuration.path(name)}"] if name in {"cinder", "octavia"} else []


def conductor(configuration: Configuration) -> Component:
    return _worker(configuration, "nova-conductor", "nova", ready="Starting conductor node")


def workers(configuration: Configuration) -> list[Component]:
    """Return the processes that do the work.

    The conductor must run first: a nova-compute that finds none waits ten seconds.
    """
    resources = {"SIMULATED_RESOURCES": json.dumps(SIMULATED_RESOURCES)}
    return [
        *(
            _worker(configuration, "nova-compute", "nova", f"{host}.conf", name=host, environment=resources)
            for host in COMPUTE_HOSTS
        ),
        _worker(configuration, "nova-scheduler", "nova"),
        _worker(configuration, "cinder-scheduler", "cinder"),
        _worker(configuration, "cinder-volume", "cinder"),
    ]


def octavia_worker(configuration: Configuration) -> Component:
    """Return Octavia's worker, whose queue must be there before the first request for it."""
    return _worker(configuration, "octavia-worker", "octavia", ready="Starting V2 consumer")


def _api(configuration: Configuration, name: str, module: str, *more: str, processes: int = 2) -> Component:
    command = [
        configuration.programs.python("uwsgi"),
        f"--http-socket=127.0.0.1:{configuration.ports[name]}",
        f"--module={module}",
        f"--virtualenv={configuration.programs.venv}",
        f"--processes={processes}",
        "--master",
        "--no-orphans",
        "--enable-threads",
        "--need-app",
        "--die-on-term",
        "--thunder-lock",
        "--buffer-size=65535",
        "--disable-logging",
        "--worker-reload-mercy=5",
        "--add-header=Connection: close",
        "--listen=100",
        *more,
    ]
    return Component(name, command, lambda _: responds(configuration.url(name)))


def _worker(
    configuration: Configuration,
    program: str,
    service: str,
    file: str | None = None,
    *,
    name: str | None = None,
    ready: str = "",
    environment: Mapping[str, str] | None = None,
) -> Component:
    command = [configuration.programs.python(program), "--config-file", str(configuration.path(service, file))]
    return Component(name or program, command, lambda log: ready in log, environment or {})


def accepts(port: int, greeting: bytes = b"") -> bool:
    """Return whether something listens on the port, and answers a greeting."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(greeting)
            return not greeting or bool(connection.recv(4))
    except OSError:
        return False


def responds(url: str) -> bool:
    """Return whether an HTTP server gives a response that is no server error."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return bool(response.status < SERVER_ERROR)
    except urllib.error.HTTPError as error:
        return error.code < SERVER_ERROR
    except OSError:
        return False
