"""What an instance cannot be made of: each rejection names both sides."""

import pytest

from remuda.compute.catalogue import offered_images, regions_for_instances, usable_flavors
from remuda.compute.instances.service import check_fit, check_network, find_flavor, find_image, gpus_of
from remuda.kernel.errors import Invalid, Malformed, RemudaError
from remuda.quota.ports import ProjectRef
from remuda.region.networks.schema import NetworkRead
from remuda.resources.schema import FlavorRead, ImageRead
from tests.kit.compute.catalogue import L4, flavor, image, region
from tests.kit.compute.region_api import network_read

HOME = ProjectRef("org", "project")


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
        (flavor(disk=42), image(size_gib=41), "flavor disk of 40 GiB is too small for an image of 41 GiB"),
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


def test_m04_a_pinned_flavor_does_not_exist_for_instances_and_every_image_of_the_region_does() -> None:
    flavors = [flavor("one"), flavor("pinned", pinned_only=True)]
    images = [image("one"), image("new", state="pending")]
    assert find_flavor(flavors, "one") == flavors[0]
    assert find_image(images, "new") == images[1]
    for name in ("pinned", "absent"):
        with pytest.raises(Malformed, match="requested flavor does not exist or is not accessible"):
            find_flavor(flavors, name)
    with pytest.raises(Malformed, match="requested image does not exist or is not accessible"):
        find_image(images, "absent")
    assert [each.metadata.id for each in usable_flavors(flavors)] == ["one"]


def test_m04_an_image_with_software_versions_is_not_offered_and_is_usable_by_its_id() -> None:
    software = {"kubernetes": "v1.31.0"}, {"slurm": "v24.5.1"}
    images = [image("one"), *(image(f"node-{n}", software_versions=each) for n, each in enumerate(software))]
    assert [each.metadata.id for each in offered_images(images)] == ["one"]
    for each in images:
        assert find_image(images, each.metadata.id) == each
        check_fit(flavor(), each)


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
