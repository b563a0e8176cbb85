"""That the first start has happened, so that it happens once in the life of a store."""

from datetime import datetime

from remuda.identity.kinds.common import OURS, VERSION
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


class BootstrapSpec(StoredStruct, frozen=True):
    """What is made at the first start, by id: whichever of it is there after a crash is not made again."""

    organization: str = ""
    project: str = ""
    administrators: str = ""
    users: str = ""
    service_account: str = ""


class BootstrapStatus(StoredStruct, frozen=True):
    """How far it has come."""

    finished: datetime | None = None
    """When everything was made and told. From then on nothing of it is ever made again, whoever removes it."""


class Bootstrap(Resource, frozen=True):
    """The first start of this store; there is one such object."""

    spec: BootstrapSpec = BootstrapSpec()
    status: BootstrapStatus = BootstrapStatus()


BOOTSTRAP = Kind(type=Bootstrap, group=OURS, version=VERSION, plural="bootstraps")
"""The record of the first start."""
