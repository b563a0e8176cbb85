"""Specs of servers and ports for the provider, with the names that they have there.

If a server has a certificate authority, its user data gets a part that makes sshd trust the authority. That part comes
last and appends to the user's cloud-config, so the user's parts apply unchanged. A multipart/mixed message gets the
part before its end; any other message or payload becomes the first part of a new message. The boundary is derived from
the content, so the same input gives the same bytes.
"""

import base64
import hashlib
import re
from collections.abc import Sequence

import yaml

from remuda.cloudinit.multipart import content_type_of, read_message
from remuda.cloudinit.user_data import read_user_data
from remuda.providers.contract.common import Handle, group_name, port_name, server_name
from remuda.providers.contract.servers import CloudPortSpec, CloudServerSpec
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.networks.rules import network_handle, tenancy_of
from remuda.region.servers.rules import user_data_of
from remuda.resources.conventions import NAME, organization_of, project_of, region_of

PART_NAME = "unikorn-ssh-certificate-authority"
"""Name of the part that is added."""

_KEYS_PATH = "/etc/ssh/trusted-user-ca-keys.pub"
_CLOUD_CONFIG = f"""\
#cloud-config
merge_how:
- {{name: list, settings: [append]}}
- {{name: dict, settings: [no_replace, recurse_list]}}
write_files:
- path: {_KEYS_PATH}
  owner: root:root
  permissions: '0644'
  content: %s
- path: /etc/ssh/sshd_config.d/90-unikorn-trusted-user-ca.conf
  owner: root:root
  permissions: '0644'
  content: "TrustedUserCAKeys {_KEYS_PATH}\\n"
runcmd:
- [sh, -c, systemctl reload-or-restart sshd || systemctl reload-or-restart ssh]
"""
_MAX_LINE = 998
_NOT_7BIT = re.compile(rb"[^\t\n -~]")


def with_authority(data: bytes, public_key: str) -> bytes:
    """Return valid user data with the part that trusts the key of an authority."""
    config = _cloud_config(public_key)
    if not data:
        return config
    part = _headers("text/cloud-config", "7bit", PART_NAME) + config
    content_type = content_type_of(data)
    if content_type is not None:
        return _mixed(_wrapped(content_type, data), part)
    message, split = read_message(data)
    if message.content_type != "multipart/mixed":
        return _mixed(data, part)
    end = len(data) - len(message.body) + split.end
    newline = b"\r\n" if data[:end].endswith(b"\r\n") else b"\n"
    inserted = b"--" + split.boundary + b"\n" + part + b"\n"
    return data[:end] + inserted.replace(b"\n", newline) + data[end:]


def _cloud_config(public_key: str) -> bytes:
    content = yaml.safe_dump(f"{public_key}\n", default_style='"', width=float("inf"))
    return (_CLOUD_CONFIG % content.strip()).encode()


def _wrapped(content_type: str, data: bytes) -> bytes:
    """Return a payload as a part: as text if mail can carry it unchanged, else in base64."""
    if _NOT_7BIT.search(data) or max(map(len, data.split(b"\n"))) > _MAX_LINE:
        return _headers(content_type, "base64") + base64.encodebytes(data)
    return _headers(content_type, "7bit") + data


def _headers(content_type: str, encoding: str, name: str = "") -> bytes:
    lines = [f"Content-Type: {content_type}", "MIME-Version: 1.0", f"Content-Transfer-Encoding: {encoding}"]
    if name:
        lines.append(f'Content-Disposition: attachment; filename="{name}"')
    return "\n".join([*lines, "", ""]).encode()


def _mixed(*parts: bytes) -> bytes:
    boundary = _boundary(*parts)
    head = b'Content-Type: multipart/mixed; boundary="' + boundary + b'"\nMIME-Version: 1.0\n\n'
    return head + b"".join(b"--" + boundary + b"\n" + part + b"\n" for part in parts) + b"--" + boundary + b"--\n"


def _boundary(*parts: bytes) -> bytes:
    """Return a boundary that occurs in no part, since no text contains its own hash."""
    return b"remuda-" + hashlib.sha256(b"\n".join(parts)).hexdigest()[:32].encode()


def replacement_number(name: str) -> int | None:
    """Return the number of the replacement in a server's name at its provider, or None if it is no such name."""
    _, dot, number = name.rpartition(".")
    return int(number) if dot and number.isdecimal() else None


def replacement_numbers(server: Server) -> range:
    """Return the numbers, in names at the provider, of the replacements of a server that may exist there."""
    replacement = server.status.replacement
    last = max(replacement.started, server.spec.replacement)
    return range(server.cloud_number(replacement.completed), server.cloud_number(last) + 1)


def port_handle(server: Server, identity: Identity) -> Handle:
    return Handle(tenancy_of(identity.metadata), port_name(server.name, server.cloud_uid))


def server_handle(server: Server, identity: Identity, replacement: int) -> Handle:
    name = server_name(server.name, server.cloud_uid, server.cloud_number(replacement))
    return Handle(tenancy_of(identity.metadata), name)


def desired_port(
    server: Server, identity: Identity, network: Network, groups: Sequence[SecurityGroup], address: Address
) -> CloudPortSpec:
    pairs = server.spec.networks[0].allowed_address_pairs
    return CloudPortSpec(
        handle=port_handle(server, identity),
        network=network_handle(network, identity).name,
        address=address.spec.ip,
        mac=address.spec.mac,
        groups=tuple(sorted(group_name(group.name, group.uid) for group in groups)),
        sources=tuple(sorted(pair.cidr for pair in pairs)),
        is_public=server.spec.has_public_ip,
    )


def user_data_for(server: Server, authority: SSHCertificateAuthority | None) -> bytes:
    """Return the user data of a server at the provider; it parses what a user wrote, so it does not run on the loop."""
    user_data = read_user_data(user_data_of(server.spec))
    return user_data if authority is None else with_authority(user_data, authority.spec.public_key)


def desired_server(server: Server, identity: Identity, user_data: bytes, replacement: int) -> CloudServerSpec:
    spec = server.spec
    return CloudServerSpec(
        handle=server_handle(server, identity, replacement),
        hostname=server.metadata.labels[NAME],
        flavor=spec.flavor_id,
        image=spec.image.id,
        rebuilds=spec.rebuilds,
        port=port_name(server.name, server.cloud_uid),
        user_data=user_data,
        has_tenancy_key=spec.ssh_injection == "identityKeypair",
        host=spec.infrastructure_ref,
        labels={
            "region:server_id": server.name,
            "region:region_id": region_of(server),
            "identity:organization_id": organization_of(server),
            "identity:project_id": project_of(server),
        },
    )
