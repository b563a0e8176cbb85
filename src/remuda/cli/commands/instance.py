"""What people want of an instance: the options of create, update and plan, and what the API is sent for them."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from remuda.cli.addresses import checked_prefix
from remuda.cli.crud import find, id_of
from remuda.cli.files import bytes_of
from remuda.cli.lookup import Asked
from remuda.cli.offers import offered
from remuda.cli.options import About
from remuda.cli.resources import FLAVOR, IMAGE, SECURITY_GROUP, SSH_CA


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Extras:
    """What need not be said. None is as it is."""

    user_data: Annotated[
        Path | None, Parameter(help="A file with what cloud-init does when the instance first starts.")
    ] = None
    security_group: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help="A security group of its network, by name or id; say it again for another one.",
            negative="--no-security-group",
        ),
    ] = None
    public_ip: Annotated[bool | None, Parameter(help="Whether it has a public address.")] = None
    source: Annotated[
        tuple[str, ...] | None,
        Parameter(help="An IPv4 prefix from which it may also send, such as a VPN's.", negative="--no-source"),
    ] = None
    ssh_ca: Annotated[
        str | None,
        Parameter(help="Who has a certificate of this SSH authority can log in; by name or id, or '' for none."),
    ] = None
    protect_deletion: Annotated[bool | None, Parameter(help="Whether it must not be deleted.")] = None
    protect_plan: Annotated[
        bool | None, Parameter(help="Whether a change that destroys something needs its plan's hash.")
    ] = None

    def __post_init__(self) -> None:
        """Refuse a prefix that is none before anything is done."""
        for each in self.source or ():
            checked_prefix("--source", each)

    def applied(self, asked: Asked, spec: dict[str, Any], network: str) -> dict[str, Any]:
        """Return what to ask for of an instance on a network that has been asked for so far."""
        spec = dict(spec)
        if self.user_data is not None:
            spec["userData"] = base64.b64encode(bytes_of(self.user_data, "--user-data")).decode()
        if self.ssh_ca is not None:
            spec.pop("sshCertificateAuthorityId", None)
        if self.ssh_ca:
            spec["sshCertificateAuthorityId"] = id_of(find(asked, SSH_CA, self.ssh_ca))
        if networking := {**(spec.get("networking") or {}), **self._networking(asked, network)}:
            spec["networking"] = networking
        if protection := {**(spec.get("protection") or {}), **self._protection()}:
            spec["protection"] = protection
        return spec

    def _networking(self, asked: Asked, network: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.security_group is not None:
            query = {"networkID": network}
            found["securityGroups"] = [id_of(find(asked, SECURITY_GROUP, each, query)) for each in self.security_group]
        if self.public_ip is not None:
            found["publicIP"] = self.public_ip
        if self.source is not None:
            found["allowedSourceAddresses"] = [*self.source]
        return found

    def _protection(self) -> dict[str, bool]:
        asked = {"deletion": self.protect_deletion, "plan": self.protect_plan}
        return {name: value for name, value in asked.items() if value is not None}


EXTRAS = Extras()
"""All is to stay as it is."""
Flavor = Annotated[str | None, Parameter(help="Another flavor, by name or id: it gets another server.")]
"""Another flavor."""
Image = Annotated[str | None, Parameter(help="Another image, by name or id: its server is rebuilt.")]
"""Another image."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is to be different. None is as it is."""

    flavor: str | None
    image: str | None
    extras: Extras
    about: About

    def body(self, asked: Asked, instance: Any) -> dict[str, Any]:
        """Return what to ask for of an instance as it is."""
        spec, status = dict(instance["spec"]), instance["status"]
        if self.flavor is not None:
            spec["flavorId"] = offered(asked, FLAVOR, status["regionId"], self.flavor)
        if self.image is not None:
            spec["imageId"] = offered(asked, IMAGE, status["regionId"], self.image)
        spec = self.extras.applied(asked, spec, status["networkId"])
        return {"metadata": self.about.metadata(instance["metadata"]), "spec": spec}
