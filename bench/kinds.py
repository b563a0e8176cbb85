"""The kinds everything is measured with: a machine as large as a real instance, and the pool that owns machines."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from remuda.kernel.conditions import Condition
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.tags import Tag
from remuda.operations.kinds import OPERATION
from remuda.store.kinds import Kind, Registry, keyed
from remuda.store.objects import Metadata, OwnerReference, Resource, StoredStruct

__all__ = ["KEYRING", "MACHINE", "POOL", "REGISTRY", "SEALER", "Machine", "Pool", "labels_of", "machine", "name_of"]

LABEL = "bench.unikorn-cloud.org"
ORGANIZATION = f"{LABEL}/organization"
"""Twenty projects each."""
PROJECT = f"{LABEL}/project"
"""500 machines each, however many there are."""
NETWORK = f"{LABEL}/network"
NAME = f"{LABEL}/name"
REGION = f"{LABEL}/region"
ZONE = f"{LABEL}/zone"
"""A third of all machines each, in one region."""
BORN = datetime(2026, 1, 1, tzinfo=UTC)

_IN_PROJECT = 500
_USER_DATA = "#cloud-config\n" + "packages: [nginx, postgresql, prometheus-node-exporter]\n" * 14


class Networking(StoredStruct, frozen=True):
    """How a machine is reached."""

    public_ip: bool = False
    security_groups: tuple[str, ...] = ()
    allowed_source_addresses: tuple[str, ...] = ()


class MachineSpec(StoredStruct, frozen=True):
    """What is wanted of a machine."""

    flavor_id: str
    image_id: str
    networking: Networking = Networking()
    tags: tuple[Tag, ...] = ()
    user_data: str = ""
    replicas: int = 1


class MachineStatus(StoredStruct, frozen=True):
    """What a machine is."""

    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    private_ip: str = ""


class Machine(Resource, frozen=True):
    """About 2 KiB, six labels."""

    spec: MachineSpec
    status: MachineStatus = MachineStatus()


class PoolSpec(StoredStruct, frozen=True):
    """What is wanted of a pool."""

    size: int = 0


class Pool(Resource, frozen=True):
    """Owns machines."""

    spec: PoolSpec = PoolSpec()


POOL = Kind(type=Pool, group="bench.remuda", version="v1alpha1", plural="pools")
MACHINE = Kind(type=Machine, group="bench.remuda", version="v1alpha1", plural="machines")
REGISTRY = Registry([POOL, MACHINE, OPERATION])
KEYRING = Keyring(SealingKey("bench", b"\x01" * 32))
SEALER = Sealer(KEYRING)


def name_of(number: int) -> str:
    """Return an id as random as a real one, the same each time for the same number."""
    digits = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
    return f"a{digits[1:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def labels_of(number: int, total: int) -> Mapping[str, str]:
    """Return the labels of one machine among `total`, in which all projects are equally large."""
    project = number % max(1, total // _IN_PROJECT)
    return {
        ORGANIZATION: name_of(project // 20),
        PROJECT: name_of(project),
        NETWORK: name_of(project * 3 + number % 3),
        NAME: f"worker-{number}",
        REGION: f"region-{number // 7 % 3}",
        ZONE: f"zone-{number // 7 % 3}",
    }


def machine(
    number: int, *, total: int = 3_000, owner: OwnerReference | None = None, finalizers: tuple[str, ...] = ()
) -> Machine:
    """Return one machine among `total`, as a client would create it."""
    owners, labels = (owner,) if owner else (), labels_of(number, total)
    metadata = Metadata(name=name_of(number), labels=labels, owner_references=owners, finalizers=finalizers)
    networking = Networking(
        public_ip=True,
        security_groups=(name_of(number % 11), name_of(number % 13)),
        allowed_source_addresses=("10.0.0.0/8", "192.168.0.0/16"),
    )
    tags = tuple(Tag(name=f"tag-{each}", value=f"value-{each}") for each in range(4))
    spec = MachineSpec(
        flavor_id=name_of(number % 5), image_id=name_of(number % 7), networking=networking, tags=tags,
        user_data=_USER_DATA,
    )  # fmt: skip
    return Machine(metadata=metadata, spec=spec)
