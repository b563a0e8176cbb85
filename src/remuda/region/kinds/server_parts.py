"""What a server is made of as it is stored: the parts of what is wanted of it, and of what is known."""

from typing import Literal

import msgspec

from remuda.region.kinds.lifecycle import Settling
from remuda.store.objects import StoredStruct

SshInjection = Literal["ca", "identityKeypair", "none"]
"""Who can log in: whoever has a certificate, whoever has the identity's key, or nobody that we know of."""

RebuildState = Literal["Initiated", "Rebuilding", "Succeeded", "Failed"]
"""How far a rebuild is; it only goes forward."""


class ServerImage(StoredStruct, frozen=True):
    """What a server starts from."""

    id: str


class ServerGroup(StoredStruct, frozen=True):
    """A security group that a server is in."""

    id: str


class ServerVolume(StoredStruct, frozen=True):
    """A volume that a server wants; no API makes one yet."""

    id: str


class AddressPair(StoredStruct, frozen=True):
    """From where a server may send besides its own address."""

    cidr: str
    mac_address: str = ""


class ServerNetwork(StoredStruct, frozen=True):
    """A network that a server is on."""

    id: str
    allowed_address_pairs: tuple[AddressPair, ...] = ()


class PublicIpAllocation(StoredStruct, frozen=True):
    """Whether a server has a public address."""

    enabled: bool = False


class Adopted(StoredStruct, frozen=True):
    """A server at the cloud whose object was lost: what names it there, and the address that it has.

    The names at the cloud carry the uid of the object that was lost, and count its replacements.
    """

    uid: str
    address: str
    number: int = 0
    """What its first replacement is counted from."""


class Rebuild(StoredStruct, frozen=True):
    """An image on its way onto a server."""

    target_image_id: str = msgspec.field(name="targetImageID")
    state: RebuildState


class Replacement(StoredStruct, frozen=True):
    """Which of the servers that were wanted in turn is being made, and which one was last there.

    The counter is written before the cloud is asked, since it is in the name there: whoever comes back after a crash
    looks for that server, and never for a third.
    """

    counter: int = 0
    done: int = 0
    cleared: int = 0
    """For which one the place is free: what stood there before is gone."""


class Stands(StoredStruct, frozen=True):
    """What a server was before another was wanted in its place: who wants that again, in time, takes the wish back."""

    flavor_id: str = msgspec.field(name="flavorID")
    image_id: str = msgspec.field(name="imageID")
    ssh_certificate_authority_id: str = msgspec.field(default="", name="sshCertificateAuthorityID")
    ssh_injection: SshInjection | None = None


class ServerVolumeStatus(StoredStruct, frozen=True):
    """How far a volume is."""

    id: str
    provisioning_status: Settling
    message: str
    device: str = ""
