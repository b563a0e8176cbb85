"""Who we are at a cloud: hidden service principals, one for each network, and what the cloud has given them.

An identity owns its network, and everything of the network lives in the identity's project at the cloud. The record
has the identity's name. It is written before anything is asked of the cloud, so that a key or a password that the cloud
knows is never lost; whatever is in it is made only once.
"""

import msgspec

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.region.kinds.api_groups import SHARED, VERSION
from remuda.region.kinds.lifecycle import ProviderType
from remuda.resources.conventions import LifecycleStatus, given
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


class IdentitySpec(StoredStruct, frozen=True):
    """Which sort of cloud it is for."""

    provider: ProviderType
    operation: str = ""
    """The operation that made it: nothing is asked of the cloud before that is done."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class Identity(Resource, frozen=True):
    """A service principal. A label says of which region."""

    spec: IdentitySpec
    status: LifecycleStatus = LifecycleStatus()


class OpenstackIdentitySpec(StoredStruct, frozen=True):
    """What an identity has at its cloud, whichever cloud that is; the name is that of existing clusters."""

    cloud: str = ""
    """What its cloud is called in `cloud_config`."""
    cloud_config: Secret | None = None
    """A `clouds.yaml`, which has a credential in it."""
    user_id: str = msgspec.field(default="", name="userID")
    password: Secret | None = None
    project_id: str = msgspec.field(default="", name="projectID")
    application_credential_id: str = msgspec.field(default="", name="applicationCredentialID")
    application_credential_secret: Secret | None = None
    server_group_id: str = msgspec.field(default="", name="serverGroupID")
    ssh_key_name: str = ""
    ssh_private_key: Secret | None = None
    """PEM."""
    ssh_public_key: str = ""
    """The other half of it, as in `authorized_keys`."""


class OpenstackIdentity(Resource, frozen=True):
    """The record of an identity at its cloud. It stays until the cloud has let go of all of it."""

    spec: OpenstackIdentitySpec = OpenstackIdentitySpec()


IDENTITY = Kind(
    type=Identity,
    group=SHARED,
    version=VERSION,
    plural="identities",
    indexes=(Index(name="operation", values=lambda identity: given(identity.spec.operation)),),
    columns={"Provider": ".spec.provider", "Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Identities, found by the labels of project and region, and by the operation that made them."""

OPENSTACK_IDENTITY = Kind(
    type=OpenstackIdentity,
    group=SHARED,
    version=VERSION,
    plural="openstackidentities",
    columns={"User": ".spec.userID", "Project": ".spec.projectID"},
)
"""Records of identities, named after them."""
