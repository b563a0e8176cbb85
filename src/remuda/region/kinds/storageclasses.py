"""Which file storage an operator offers, and who provides it.

Operators write these. Labels say for which region and, if not for everybody, for which organization.
"""

from typing import Literal

from remuda.region.kinds.api_groups import SHARED, VERSION
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct

FileProtocol = Literal["nfsv3", "nfsv4"]
"""How storage of a class can be mounted."""


class FileStorageClassSpec(StoredStruct, frozen=True):
    """What storage of a class is like."""

    provisioner: str
    """The id of who provides it."""
    protocols: tuple[FileProtocol, ...] = ()
    parallelism: int = 4
    """How many addresses it has on each network."""


class FileStorageClass(Resource, frozen=True):
    """A class of file storage."""

    spec: FileStorageClassSpec


class ConfigName(StoredStruct, frozen=True):
    """Names a configuration in the cluster that the objects are stored in."""

    namespace: str
    name: str


class FileStorageProvisionerSpec(StoredStruct, frozen=True):
    """Where the provisioner's configuration is."""

    config_ref: ConfigName | None = None


class FileStorageProvisioner(Resource, frozen=True):
    """Somebody who provides file storage."""

    spec: FileStorageProvisionerSpec = FileStorageProvisionerSpec()


FILE_STORAGE_CLASS = Kind(
    type=FileStorageClass,
    group=SHARED,
    version=VERSION,
    plural="filestorageclasses",
    columns={"Protocols": ".spec.protocols"},
)
"""Classes of file storage, found by their labels."""

FILE_STORAGE_PROVISIONER = Kind(
    type=FileStorageProvisioner, group=SHARED, version=VERSION, plural="filestorageprovisioners"
)
"""Those who provide it."""
