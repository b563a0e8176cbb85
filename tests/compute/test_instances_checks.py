"""What an instance cannot be made of: each rejection names both sides."""

import pytest

from remuda.compute.catalogue import regions_for_instances, usable_flavors, usable_images
from remuda.compute.instances.service import check_fit, check_network, find_flavor, find_image, gpus_of
from remuda.kernel.errors import Invalid, Malformed, RemudaError
from remuda.quota.ports import ProjectRef
from remuda.region.networks.schema import NetworkRead
from remuda.resources.schema import FlavorRead, ImageRead
from tests.kit.compute.catalogue import L4, flavor, image, region
from tests.kit.compute.region_api import network_read

HOME = ProjectRef("org", "project")
KUBERNETES = {"kubernetes": "v1.31.0"}


def test_m04_what_fits_fits() -> None:
    check_fit(flavor(), image())
    check_fit(flavor(baremetal=True), image(virtualization="baremetal"))
    check_fit(flavor(baremetal=True), image(virtualization="any"))
    check_fit(flavor(), image(virtualization="virtualized"))
    check_fit(flavor(disk=0), image(size_gib=500))


@pytest.mark.parametrize(
    ("chosen", "made_of", "sentence"),
    [
        (flavor(), image(state="creating"), "requested image is not ready for use: it is creating"),
        (
            flavor(),
            image(architecture="aarch64"),
            "image architecture aarch64 is not compatible with flavor architecture x86_64",
        ),
        (flavor(disk=42), image(size_gib=41), "flavor disk of 42 GB is too small for an image of 41 GiB"),
        (
            flavor(),
            image(virtualization="baremetal"),
            "image virtualization baremetal is not compatible with a virtualized flavor",
        ),
        (
            flavor(baremetal=True),
            image(virtualization="virtualized"),
            "image virtualization virtualized is not compatible with a baremetal flavor",
        ),
    ],
)
def test_m04_what_does_not_fit_is_refused_with_both_sides(
    chosen: FlavorRead, made_of: ImageRead, sentence: str
) -> None:
    with pytest.raises(Malformed) as refused:
        check_fit(chosen, made_of)
    assert refused.value.message == sentence


@pytest.mark.parametrize("gib", range(1, 200))
def test_m04_a_disk_of_whole_gib_has_capacity_for_an_image_of_as_many_and_for_no_larger_one(gib: int) -> None:
    offered = flavor(disk=gib * (1 << 30) // 10**9)
    check_fit(offered, image(size_gib=gib))
    with pytest.raises(Malformed):
        check_fit(offered, image(size_gib=gib + 1))


def test_m04_what_is_not_offered_to_instances_does_not_exist() -> None:
    flavors = [flavor("one"), flavor("pinned", pinned_only=True)]
    images = [image("one"), image("node", software_versions=KUBERNETES), image("new", state="pending")]
    assert find_flavor(flavors, "one") == flavors[0]
    assert find_image(images, "new") == images[2]
    for name in ("pinned", "absent"):
        with pytest.raises(Malformed, match="requested flavor does not exist or is not accessible"):
            find_flavor(flavors, name)
    for name in ("node", "absent"):
        with pytest.raises(Malformed, match="requested image does not exist or is not accessible"):
            find_image(images, name)
    assert [each.metadata.id for each in usable_flavors(flavors)] == ["one"]
    assert [each.metadata.id for each in usable_images(images)] == ["one"]


def test_a_region_that_is_a_cluster_is_not_for_instances() -> None:
    regions = [region("a", "simulated"), region("b", "kubernetes"), region("c", "openstack")]
    assert [each.metadata.id for each in regions_for_instances(regions)] == ["a", "c"]


def test_m17_the_gpus_of_a_flavor_are_its_physical_ones() -> None:
    assert (gpus_of(flavor()), gpus_of(flavor(gpu=L4))) == (0, 2)


@pytest.mark.parametrize(
    ("network", "error"),
    [
        (network_read(organization="org", project="other"), Invalid),
        (network_read(organization="other", project="project"), Invalid),
        (network_read(organization="org", project="project", is_deleting=True), Malformed),
    ],
)
def test_m03_a_network_of_another_project_or_on_its_way_out_is_refused(
    network: NetworkRead, error: type[RemudaError]
) -> None:
    with pytest.raises(error):
        check_network(network, HOME)
