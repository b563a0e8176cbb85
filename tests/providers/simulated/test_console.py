"""A boot is seen on the console, and on it what cloud-init makes of the user data."""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import WrongState
from remuda.providers.contract.networks import Tenancy
from remuda.providers.simulated.catalogue import without_delays
from remuda.providers.simulated.cloud_init import cloud_init_effects
from tests.kit.environment import options
from tests.kit.providers.conformance import TENANCY, handle_of_server
from tests.kit.providers.simulated_cloud import METAL, METAL_IMAGE, PROMPT, Scene

SERVER = handle_of_server()


def public_key(number: int) -> str:
    key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def fingerprint(line: str) -> str:
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


CONFIG = f"""#cloud-config
hostname: chosen-name
users:
- default
- name: deploy
  passwd: hunter2-hash
  ssh_authorized_keys: ["{public_key(2)} deploy@laptop"]
packages: [nginx, [curl, "8.0"]]
write_files:
- path: /etc/app/secret.env
  content: PASSWORD=hunter2
- path: /etc/ssh/trusted.pub
  content: "{public_key(3)}\\n"
- path: /etc/ssh/sshd_config.d/90-ca.conf
  content: "TrustedUserCAKeys /etc/ssh/trusted.pub\\n"
runcmd:
- [sh, -c, "echo hunter2"]
- systemctl restart app --token=hunter2
""".encode()


async def output(scene: Scene) -> str:
    assert scene.provider.consoles is not None
    return await scene.provider.consoles.console_output(SERVER)


async def boot(scene: Scene, user_data: bytes = b"", *, has_tenancy_key: bool = False) -> str:
    await scene.bench.port()
    wanted = replace(scene.bench.server_spec(), user_data=user_data, has_tenancy_key=has_tenancy_key)
    await scene.servers.create_server(wanted)
    await scene.bench.in_state(SERVER, "running")
    return await output(scene)


async def test_a_boot_writes_its_log_as_it_goes_and_ends_with_the_prompt(scene: Scene) -> None:
    await scene.bench.port()
    await scene.servers.create_server(scene.bench.server_spec())
    logs = []
    for _ in range(5):
        logs.append(await output(scene))
        await scene.sleep(0.45)
    assert all(later.startswith(earlier) for earlier, later in pairwise(logs))
    assert len({len(each) for each in logs}) == 5
    assert "Linux version 6.8.0-48-generic" in logs[0]
    assert "login:" not in logs[-1]
    await scene.sleep(1)
    whole = await output(scene)
    for said in ("Welcome to Ubuntu 24.04!", "running 'init-local'", "running 'modules:final'", "ssh.service"):
        assert said in whole
    assert whole.endswith("web-1 login: \n")


@options(catalogue=without_delays(PROMPT))
async def test_cloud_init_is_seen_to_apply_the_user_data_and_no_secret_is(scene: Scene) -> None:
    log = await boot(scene, CONFIG)
    for said in (
        "Setting the hostname to chosen-name",
        "Adding user ubuntu",
        "Adding user deploy",
        "Installing 2 packages: nginx curl",
        "Writing 16 bytes to /etc/app/secret.env",
        "Running runcmd: 2 commands",
        f"authorized key | {fingerprint(public_key(2))}",
        f"sshd trusts user certificates of the authority {fingerprint(public_key(3))}",
    ):
        assert said in log, said
    assert "hunter2" not in log
    assert log.endswith("chosen-name login: \n")


@options(catalogue=without_delays(PROMPT))
async def test_the_key_of_the_tenancy_is_let_in_only_where_it_was_asked_for(scene: Scene) -> None:
    assert scene.provider.tenancies is not None
    await scene.bench.port()
    await scene.provider.tenancies.converge_tenancy(
        Tenancy(name=TENANCY, organization="the-organization", project="the-project", public_key=public_key(1))
    )
    for has_key in (True, False):
        await scene.servers.create_server(replace(scene.bench.server_spec(), has_tenancy_key=has_key))
        log = await output(scene)
        assert (f"authorized key | {fingerprint(public_key(1))}" in log) is has_key
        assert ("no authorized SSH keys" in log) is not has_key
        await scene.servers.remove_server(SERVER)


@options(catalogue=without_delays(PROMPT))
async def test_the_host_keys_are_real_and_stay_the_same_until_the_disk_is_another(scene: Scene) -> None:
    log = await boot(scene)
    begin, end = "-----BEGIN SSH HOST KEY KEYS-----\n", "-----END SSH HOST KEY KEYS-----"
    keys = log.partition(begin)[2].partition(end)[0].splitlines()
    assert len(keys) == 2
    for line in keys:
        load_ssh_public_key(line.encode())
        assert f"256 {fingerprint(line)} root@web-1" in log
    await scene.servers.reboot_server(SERVER, hard=True)
    again = await output(scene)
    assert again.count("Linux version") == 2, "what it wrote before is kept"
    assert again.count(keys[0]) == 2
    await scene.servers.rebuild_server(SERVER, scene.bench.other_image)
    rebuilt = await output(scene)
    assert keys[0] not in rebuilt
    assert "Welcome to Debian 12!" in rebuilt


@options(catalogue=without_delays(PROMPT))
async def test_a_rebuilt_server_does_what_its_user_data_says_by_then(scene: Scene) -> None:
    log = await boot(scene, user_data=b"#cloud-config\npackages: [nginx]\n")
    assert "nginx" in log
    await scene.servers.rebuild_server(SERVER, scene.bench.other_image)
    assert "nginx" in await output(scene), "it keeps what it was given"
    await scene.servers.rebuild_server(SERVER, scene.bench.image, b"#cloud-config\npackages: [redis]\n")
    rebuilt = await output(scene)
    assert "redis" in rebuilt
    assert "nginx" not in rebuilt


@options(catalogue=without_delays(PROMPT))
async def test_a_stopped_server_has_written_that_it_stops_and_no_log_grows_without_end(scene: Scene) -> None:
    await boot(scene)
    await scene.servers.stop_server(SERVER)
    assert (await output(scene)).endswith("reboot: Power down\n")
    await scene.servers.start_server(SERVER)
    assert (await output(scene)).endswith("login: \n")
    for _ in range(10):
        await scene.servers.reboot_server(SERVER, hard=False)
    assert (await output(scene)).count("Linux version") == 3


@options(catalogue=without_delays(PROMPT))
async def test_a_graphics_driver_is_seen_where_image_and_flavor_have_one(scene: Scene) -> None:
    await scene.bench.port()
    gpu = replace(
        scene.bench.server_spec(),
        flavor="22222222-2222-2222-2222-222222222222",
        image="44444444-4444-4444-4444-444444444444",
    )
    await scene.servers.create_server(gpu)
    log = await output(scene)
    assert "NVIDIA L4" in log
    assert "loaded driver 550.54.15" in log


async def test_the_address_of_a_console_is_good_for_a_while(scene: Scene) -> None:
    consoles = scene.cloud.consoles
    await scene.bench.port()
    await scene.servers.create_server(replace(scene.bench.server_spec(), flavor=METAL, image=METAL_IMAGE))
    with pytest.raises(WrongState):
        await consoles.open_console(SERVER)
    await scene.bench.in_state(SERVER, "running")
    url = await consoles.open_console(SERVER)
    (token,) = parse_qs(urlsplit(url).query)["token"]
    assert consoles.session_of_token(token).server == SERVER
    with pytest.raises(NotFound):
        consoles.session_of_token(token[:-1])
    await scene.sleep(299)
    assert consoles.session_of_token(token).server == SERVER
    await scene.sleep(2)
    with pytest.raises(NotFound):
        consoles.session_of_token(token)
    url = await consoles.open_console(SERVER)
    (token,) = parse_qs(urlsplit(url).query)["token"]
    scene.cloud.operator.vanish(SERVER.name)
    with pytest.raises(NotFound):
        consoles.session_of_token(token)


@pytest.mark.parametrize(
    ("user_data", "told"),
    [
        (b"#cloud-config\npackages: [\n", "part from part-001: it is not valid YAML"),
        (b"#cloud-config\njust words", "part from part-001: it is not a mapping"),
        (b"#cloud-config\n%TAG !a! b:\n---\nhostname: x\n", "part from part-001: it has a %TAG directive"),
        (b"#cloud-config\r%TAG !a! b:\r---\rhostname: x\r", "part from part-001: it has a %TAG directive"),
        (b"#cloud-config\n\xff", "part from part-001: it is not UTF-8"),
        (b"#cloud-config\nx: " + b"[" * 30_000, "part from part-001: it is nested too deep"),
        (b"#cloud-config\n" + b"? " * 30_000, "part from part-001: it is nested too deep"),
        (b"#cloud-config\npackages: [" + b"a," * 30_000 + b"]", "part from part-001: it has too many entries"),
        (
            b"#include\nhttp://192.0.2.1/",
            "Skipping part part-001 of type text/x-include-url: a simulated machine fetches nothing",
        ),
        (
            b"## template: jinja\n#cloud-config\nhostname: {{ v1.local_hostname }}\n",
            "Skipping part part-001 of type text/jinja2: a simulated machine fills in no templates",
        ),
        (b"#cloud-config-jsonp\n[]", "text/cloud-config-jsonp: a simulated machine applies no JSON patches"),
        (b"#part-handler\nimport os", "text/part-handler: a simulated machine runs no handlers"),
        (b"#cloud-config-archive\njust words", "Failed at reading the archive user-data: it is not a list"),
        (b"#cloud-config-archive\n[", "Failed at reading the archive user-data: it is not valid YAML"),
        (
            b"#cloud-config-archive\n[{type: a/b, content: x}]",
            "Unhandled unknown content-type (a/b) userdata: part-001",
        ),
        (b"nothing that it knows", "Unhandled non-multipart userdata"),
    ],
)
@options(lambda: {"catalogue": without_delays(PROMPT)}, seeds=1)
async def test_what_cloud_init_cannot_read_is_a_warning(scene: Scene, user_data: bytes, told: str) -> None:
    applied = cloud_init_effects(user_data)
    assert len(applied.warnings) == 1
    assert told in applied.warnings[0]
    assert "just words" not in applied.warnings[0]
    assert told in await boot(scene, user_data)


def test_aliases_and_merges_are_not_unfolded() -> None:
    bomb = b"#cloud-config\na0: &a0 [x]\n" + b"".join(
        b"a%d: &a%d [*a%d, *a%d]\n" % (number, number, number - 1, number - 1) for number in range(1, 60)
    )
    assert cloud_init_effects(bomb + b"packages: *a59\n").packages == []
    merged = b"#cloud-config\n<<: {hostname: merged}\nhostname: own\n"
    assert cloud_init_effects(merged).hostname == "own"


def test_every_part_of_a_message_is_applied_packed_or_not() -> None:
    message = (
        b'Content-Type: multipart/mixed; boundary="b"\nMIME-Version: 1.0\n\n'
        b"--b\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho hunter2\n\n"
        b"--b\nContent-Type: text/cloud-config\n"
        b'Content-Disposition: attachment; filename="mine"\n\n#cloud-config\npackages: [jq]\n\n'
        b"--b--\n"
    )
    for data in (message, gzip.compress(message)):
        applied = cloud_init_effects(data)
        assert applied.packages == ["jq"]
        assert applied.scripts == [("part-001", 2)]
        assert applied.warnings == []


def test_every_entry_of_an_archive_is_applied_as_a_part_of_its_own() -> None:
    applied = cloud_init_effects(
        b"#cloud-config-archive\n"
        b'- "#!/bin/sh\\necho hunter2"\n'
        b"- type: text/cloud-config\n  content: 'packages: [jq]'\n"
        b'- {content: "runcmd: [a, b]", filename: own}\n'
        b"- {content: \"#cloud-config-archive\\n[{content: 'hostname: deep'}]\"}\n"
        b"- [no entry]\n- {type: text/cloud-config}\n"
    )
    assert (applied.packages, applied.commands, applied.hostname) == (["jq"], 2, "deep")
    assert applied.scripts == [("part-001", 2)]
    assert applied.warnings == []


def test_archives_in_archives_end_somewhere() -> None:
    innermost = "hostname: deep"
    for _ in range(12):
        innermost = "#cloud-config-archive\n" + json.dumps([innermost])
    applied = cloud_init_effects(innermost.encode())
    assert applied.hostname == ""
    assert applied.warnings == ["An archive in so many others is not shown here"]


class ParsedYaml:
    """What is given to the parser of YAML, and what it finds there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.events = 0
        self._parse = yaml.parse
        monkeypatch.setattr(yaml, "parse", self._counted)

    def _counted(self, text: str, **options: Any) -> Iterator[yaml.Event]:
        self.sizes.append(len(text))
        for event in self._parse(text, **options):
            self.events += 1
            yield event


def archives(count: int, entries: bytes) -> bytes:
    """Return a message of archives."""
    head = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
    part = b"--B\nContent-Type: text/cloud-config-archive\n\n#cloud-config-archive\n" + entries + b"\n"
    return head + part * count + b"--B--\n"


def archives_in(levels: int, innermost: bytes) -> bytes:
    for _ in range(levels):
        innermost = b"#cloud-config-archive\n- |\n" + b"".join(b" " + line + b"\n" for line in innermost.splitlines())
    return innermost


HEAVY = {
    "archives of many entries": archives(136, b"[" + b"a," * 1_900 + b"]"),
    "archives without entries": archives(255, b"[" + b"[]," * 1_300 + b"]"),
    "archives that are broken": archives(255, b"{"),
    "archives of one long line": archives(255, b"# " + b"a" * 3_900),
    "long archives in archives": archives_in(4, b"#cloud-config\n# " + b"a" * 900_000),
    "wide archives in archives": archives_in(2, b"#cloud-config-archive\n" + b'- "#cloud-config-archive\\n{"\n' * 900),
    "one long list": b"#cloud-config\npackages: [" + b"a," * 400_000 + b"]",
}


@pytest.mark.parametrize("document", HEAVY.values(), ids=HEAVY)
def test_however_many_archives_user_data_has_little_of_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch, document: bytes
) -> None:
    parsed = ParsedYaml(monkeypatch)
    applied = cloud_init_effects(gzip.compress(document))
    assert parsed.events <= 4_100
    assert len(parsed.sizes) <= 1_000
    assert sum(parsed.sizes) <= 128 * 1024
    assert 1 <= len(applied.warnings) <= 9


def test_no_part_is_read_that_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = ParsedYaml(monkeypatch)
    applied = cloud_init_effects(archives(100, b'- "#!/bin/sh"'))
    assert applied.scripts == [(f"part-{number:03d}", 1) for number in range(1, 9)]
    assert applied.warnings == ["Only the first 8 parts are shown here"]
    assert len(parsed.sizes) == 9


@options(lambda: {"catalogue": without_delays(PROMPT)}, seeds=1)
async def test_user_data_is_read_once_for_many_reads_of_a_console(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = ParsedYaml(monkeypatch)
    first = await boot(scene, CONFIG)
    assert "chosen-name" in first
    assert await output(scene) == first
    assert len(parsed.sizes) == 1


def test_a_template_that_has_nothing_to_be_filled_in_is_what_it_says() -> None:
    applied = cloud_init_effects(b"## template: jinja\n#cloud-config\npackages: [jq]\n")
    assert (applied.packages, applied.warnings) == (["jq"], [])
    script = cloud_init_effects(b"## template: jinja\n#!/bin/sh\ntrue\n")
    assert (script.scripts, script.warnings) == ([("part-001", 2)], [])


def test_what_stands_in_user_data_cannot_forge_lines() -> None:
    applied = cloud_init_effects(
        b'#cloud-config\npackages: ["a\\nfake login: ", "\\e[2J", "' + b"x" * 500 + b'"]\nusers: [{name: 5}]'
    )
    assert applied.packages[0] == "a?fake login: "
    assert applied.packages[1] == "?[2J"
    assert len(applied.packages[2]) == 121
    assert applied.users == ["5"]
