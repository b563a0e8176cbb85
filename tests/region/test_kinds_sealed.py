"""What is secret is not in the stored bytes."""

import pytest

from remuda.kernel.secrets import Secret
from remuda.region.kinds import KINDS
from remuda.region.kinds.images import ImageImport, ImageImportSpec, ImageOs
from remuda.region.kinds.networks import OpenstackIdentity, OpenstackIdentitySpec
from remuda.region.kinds.regions import Region, RegionKubernetes, RegionOpenstack, RegionSpec, ServiceAccountConfig
from remuda.region.kinds.servers import Server, ServerImage, ServerSpec
from remuda.store.codec import codecs
from remuda.store.kinds import Registry
from remuda.store.objects import Metadata, Resource
from tests.kit.simulation.store import SEALER

REGISTRY = Registry(KINDS)
CANARY = "canary-in-the-mine"
SECRETIVE: list[Resource] = [
    OpenstackIdentity(
        metadata=Metadata(name="record"),
        spec=OpenstackIdentitySpec(
            cloud_config=Secret(CANARY),
            password=Secret(CANARY),
            application_credential_secret=Secret(CANARY),
            ssh_private_key=Secret(CANARY),
        ),
    ),
    ImageImport(
        metadata=Metadata(name="image"),
        spec=ImageImportSpec(
            architecture="x86_64",
            virtualization="any",
            os=ImageOs(kernel="linux", family="debian", distro="ubuntu", version="24.04"),
            uri=Secret(f"https://example.com/disk.raw?signature={CANARY}"),
        ),
    ),
    Server(
        metadata=Metadata(name="server"),
        spec=ServerSpec(flavor_id="flavor", image=ServerImage(id="image"), user_data=Secret(CANARY)),
    ),
    Region(
        metadata=Metadata(name="region"),
        spec=RegionSpec(
            provider="openstack",
            kubernetes=RegionKubernetes(kube_config=Secret(CANARY)),
            openstack=RegionOpenstack(
                endpoint="https://keystone.example.com",
                service_account=ServiceAccountConfig(
                    domain_id="domain", project_id="project", user_id="user", password=Secret(CANARY)
                ),
            ),
        ),
    ),
]


@pytest.mark.parametrize("resource", SECRETIVE, ids=lambda resource: type(resource).__name__)
def test_what_is_secret_is_sealed_and_comes_back(resource: Resource) -> None:
    codec = codecs(REGISTRY, SEALER)[type(resource)]
    stored = codec.encode(resource)
    assert CANARY.encode() not in stored
    assert CANARY not in repr(resource)
    assert codec.decode(stored, resource.name) == resource


def test_every_kind_with_a_secret_is_tried() -> None:
    assert {kind.type for kind in KINDS if kind.has_secrets} == {type(each) for each in SECRETIVE}
