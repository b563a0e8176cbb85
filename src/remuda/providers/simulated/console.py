"""Consoles of the simulated cloud's servers: the boot log of kernel, systemd, cloud-init and sshd, and console URLs."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import NotFound, Unsealable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import CloudFlavor, CloudImage
from remuda.providers.contract.common import Handle, WrongState
from remuda.providers.contract.servers import CloudServerState
from remuda.providers.simulated.cloud_init import CloudInitEffects, CloudInitEffectsCache, fingerprint, host_keys
from remuda.providers.simulated.database import as_datetime
from remuda.providers.simulated.gateway import CloudContext
from remuda.providers.simulated.images import SimImages
from remuda.providers.simulated.networks import SimPorts, SimTenancies
from remuda.providers.simulated.server_states import ServerRecord, ServerStateMachine

_DEFAULT_BOOT_S = 2.0
_CLOUD_INIT = "24.3.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Everything that a boot log shows of a server."""

    hostname: str
    kernel: str
    flavor: CloudFlavor | None
    image: CloudImage | None
    address: str
    mac: str
    key_seed: str
    applied: CloudInitEffects
    tenancy_key: str = ""

    @property
    def system(self) -> str:
        os = self.image.os if self.image else None
        return f"{os.distro.capitalize()} {os.version}" if os else "Linux"

    @property
    def user(self) -> str:
        return self.image.os.distro if self.image else "cloud-user"


def boot_log(machine: Machine, began: datetime, *, takes_s: float, elapsed_s: float) -> list[str]:
    """Return the lines that a boot has output by now."""
    span_s = takes_s or _DEFAULT_BOOT_S
    stages = (
        (0.0, 0.3, _kernel(machine)),
        (0.3, 0.5, _systemd(machine)),
        (0.5, 0.95, _cloud_init(machine, began, span_s)),
        (0.95, 1.0, _login(machine)),
    )
    lines: list[str] = []
    for start, end, stage in stages:
        found = list(stage)
        for number, line in enumerate(found):
            at_s = span_s * (start + (end - start) * number / len(found))
            if takes_s and at_s > elapsed_s:
                return lines
            lines.append(f"[{at_s:12.6f}] {line}" if start < 0.5 else line)  # noqa: PLR2004  the stages in which the kernel owns the console
    return lines


def power_off_log() -> list[str]:
    """Return the lines that a server writes when it stops."""
    return [
        "         Stopping ssh.service - OpenBSD Secure Shell server...",
        "[  OK  ] Stopped ssh.service - OpenBSD Secure Shell server.",
        "[  OK  ] Unmounted all filesystems.",
        "[  OK  ] Reached target poweroff.target - System Power Off.",
        "reboot: Power down",
    ]


def _kernel(machine: Machine) -> Iterator[str]:
    flavor = machine.flavor
    cpus, memory = (flavor.cpus, flavor.memory_bytes // 1024) if flavor else (1, 2**20)
    yield f"Linux version {machine.kernel} (buildd@simulated) #1 SMP PREEMPT_DYNAMIC"
    yield "Command line: BOOT_IMAGE=/boot/vmlinuz root=LABEL=cloudimg-rootfs ro console=tty1 console=ttyS0"
    yield "DMI: Remuda Simulated Cloud, BIOS 1.0"
    yield f"Memory: {memory - memory // 32}K/{memory}K available"
    yield f"smp: Brought up 1 node, {cpus} CPUs"
    yield f"virtio_net virtio0: MAC {machine.mac}"
    if flavor is not None and flavor.gpu is not None:
        for number in range(flavor.gpu.physical_count):
            yield f"pci 0000:00:{5 + number:02x}.0: {flavor.gpu.vendor} {flavor.gpu.model}"
        if machine.image is not None and machine.image.gpu is not None:
            yield f"{flavor.gpu.vendor.lower()}: loaded driver {machine.image.gpu.driver}"
    yield "EXT4-fs (vda1): mounted filesystem with ordered data mode"


def _systemd(machine: Machine) -> Iterator[str]:
    yield "systemd[1]: systemd running in system mode"
    yield f"systemd[1]: Detected virtualization {'none' if machine.flavor and machine.flavor.is_baremetal else 'kvm'}."
    yield f"Welcome to {machine.system}!"
    yield f"systemd[1]: Hostname set to <{machine.hostname}>."
    yield "[  OK  ] Reached target local-fs.target - Local File Systems."
    yield "[  OK  ] Started systemd-networkd.service - Network Configuration."
    yield "[  OK  ] Reached target network-online.target - Network is Online."


def _cloud_init(machine: Machine, began: datetime, span_s: float) -> Iterator[str]:
    applied = machine.applied

    def runs(stage: str, share: float) -> str:
        when = f"{began:%a, %d %b %Y %H:%M:%S} +0000"
        up_s = span_s * share
        return f"cloud-init[512]: Cloud-init v. {_CLOUD_INIT} running '{stage}' at {when}. Up {up_s:.2f} seconds."

    yield runs("init-local", 0.5)
    yield runs("init", 0.55)
    yield f"ci-info: | eth0 | True | {machine.address} | global | {machine.mac} |"
    yield f"cloud-init[512]: Setting the hostname to {applied.hostname or machine.hostname}"
    for warning in applied.warnings:
        yield f"cloud-init[512]: WARNING: {warning}"
    yield runs("modules:config", 0.65)
    for user in (machine.user, *applied.users):
        yield f"cloud-init[512]: Adding user {user}"
    for path, size in applied.files:
        yield f"cloud-init[512]: Writing {size} bytes to {path}"
    for authority in applied.authorities:
        yield f"cloud-init[512]: sshd trusts user certificates of the authority {authority}"
    if applied.packages:
        yield f"cloud-init[512]: Installing {len(applied.packages)} packages: {' '.join(applied.packages)}"
    yield runs("modules:final", 0.85)
    for name, lines in applied.scripts:
        yield f"cloud-init[512]: Running script {name} ({lines} lines)"
    if applied.commands:
        yield f"cloud-init[512]: Running runcmd: {applied.commands} commands"
    yield from _keys(machine)
    yield (
        f"cloud-init[512]: Cloud-init v. {_CLOUD_INIT} finished. Datasource DataSourceConfigDrive. "
        f"Up {span_s * 0.95:.2f} seconds"
    )


def _keys(machine: Machine) -> Iterator[str]:
    own = fingerprint(machine.tenancy_key) if machine.tenancy_key else None
    keys = [*([own] if own else ()), *machine.applied.keys]
    for key in keys:
        yield f"ci-info: | {machine.user} | authorized key | {key} |"
    if not keys:
        yield f"ci-info: no authorized SSH keys fingerprints found for user {machine.user}."
    yield "-----BEGIN SSH HOST KEY FINGERPRINTS-----"
    lines = host_keys(machine.key_seed)
    for name, line in lines:
        yield f"256 {fingerprint(line)} root@{machine.hostname} ({name})"
    yield "-----END SSH HOST KEY FINGERPRINTS-----"
    yield "-----BEGIN SSH HOST KEY KEYS-----"
    for _, line in lines:
        yield f"{line} root@{machine.hostname}"
    yield "-----END SSH HOST KEY KEYS-----"


def _login(machine: Machine) -> Iterator[str]:
    yield "[  OK  ] Started ssh.service - OpenBSD Secure Shell server."
    yield "[  OK  ] Reached target multi-user.target - Multi-User System."
    yield ""
    yield f"{machine.system} {machine.applied.hostname or machine.hostname} ttyS0"
    yield ""
    yield f"{machine.applied.hostname or machine.hostname} login: "


_TOKEN_BYTES, _VIEWER = 24, "console viewer"
_VISIBLE: frozenset[CloudServerState] = frozenset({"building", "running", "stopping", "rebuilding"})
_OFF: frozenset[CloudServerState] = frozenset({"stopped", "failed", "removing"})
_KERNEL = "6.8.0-48-generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSession:
    """Right to see a screen, which a token gives."""

    server: Handle
    viewer: str
    """For whom it was opened, as `open_console` was told."""
    opened: datetime


class SimConsoles:
    """Consoles of the simulated cloud's servers."""

    def __init__(
        self,
        context: CloudContext,
        *,
        states: ServerStateMachine,
        images: SimImages,
        ports: SimPorts,
        tenancies: SimTenancies,
    ) -> None:
        self._storage, self._gateway, self._randomness = context.storage, context.gateway, context.randomness
        self._catalogue, self._sealer = context.catalogue, context.sealer
        self._states, self._images, self._ports, self._tenancies = states, images, ports, tenancies
        self._cloud_init = CloudInitEffectsCache()

    async def open_console(self, handle: Handle, *, viewer: str = "") -> str:
        """Return a temporary URL at which a browser shows the screen; WrongState if there is none."""
        return await self._gateway.write("open_console", lambda: self._open(handle, viewer))

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Return the last lines that a server wrote to its console."""
        output = await self._gateway.read("console_output", lambda: self._console_lines(handle))
        shown = output if lines is None else output[max(0, len(output) - lines) :]
        return "".join(f"{line}\n" for line in shown)

    def session_of_token(self, token: str, *, server: str | None = None) -> ConsoleSession:
        """Return the session of a valid console token, or raise NotFound; `server` is the id in the URL."""
        row = self._storage.row(
            "SELECT tenancy, name, servers.id, until FROM consoles JOIN servers ON servers.id = consoles.server "
            "WHERE digest = ? AND until > ?",
            (_digest(token), self._storage.now()),
        )
        if row is None or server not in {None, row[2]}:
            raise NotFound("console", "of this address")
        try:
            viewer = self._sealer.open(token.partition(".")[2], context=_VIEWER).reveal()
        except Unsealable:
            raise NotFound("console", "of this address") from None
        opened = as_datetime(row[3] - self._catalogue.times.console_s)
        return ConsoleSession(server=Handle(*row[:2]), viewer=viewer, opened=opened)

    def _open(self, handle: Handle, viewer: str) -> str:
        server = self._states.get(handle)
        if server.state not in _VISIBLE:
            raise WrongState("server", handle.name, state=server.state)
        secret = to_base64url(self._randomness.token_bytes(_TOKEN_BYTES))
        token = f"{secret}.{self._sealer.seal(Secret(viewer), context=_VIEWER)}"
        now = self._storage.now()
        self._storage.run("DELETE FROM consoles WHERE until <= ?", (now,))
        self._storage.run(
            "INSERT INTO consoles VALUES (?, ?, ?)", (_digest(token), server.id, now + self._catalogue.times.console_s)
        )
        return f"{self._catalogue.console_url}/{self._catalogue.name}/{server.id}?token={token}"

    def _console_lines(self, handle: Handle) -> list[str]:
        record, now = self._states.record(handle, self._sealer), self._storage.now()
        machine = self._machine(record)
        lines: list[str] = []
        for began, takes_s in record.boots:
            began_at = as_datetime(began)
            lines.extend(boot_log(machine, began_at, takes_s=takes_s, elapsed_s=now - began))
        if record.boots and record.server.state in _OFF and record.server.launched:
            lines.extend(power_off_log())
        return lines

    def _machine(self, record: ServerRecord) -> Machine:
        spec, server = record.spec, record.server
        port = self._ports.read(Handle(spec.handle.tenancy, spec.port))
        tenancy = self._tenancies.read(spec.handle.tenancy) if spec.has_tenancy_key else None
        return Machine(
            hostname=spec.hostname,
            kernel=self._catalogue.kernels.get(server.image, _KERNEL),
            flavor=self._catalogue.flavor(server.flavor),
            image=self._images.read(server.image),
            address=port.spec.address if port else "",
            mac=port.spec.mac if port else "",
            key_seed=f"{server.id} {server.image}",
            applied=self._cloud_init.effects(spec.user_data),
            tenancy_key=tenancy.public_key if tenancy else "",
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
