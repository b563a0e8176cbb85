"""What a cloud offers comes from a file, and a wrong file is told what is wrong with it."""

import ipaddress
from pathlib import Path

import pytest

from remuda.kernel.errors import Invalid
from remuda.providers.simulated.catalogue import load_catalogues, parse_catalogues, without_delays
from tests.kit.providers.simulated_cloud import USUAL

GOOD = """
[[flavors]]
id = "11111111-1111-1111-1111-111111111111"
name = "small"
cpus = 1
memory_gib = 2
disk_gib = 20
[[images]]
id = "33333333-3333-3333-3333-333333333333"
name = "linux"
size_gib = 1
os = { family = "debian", distro = "debian", version = "12" }
[clouds.one]
public_addresses = ["198.51.100.0/29"]
hosts = { small = { count = 2, size = 3 } }
"""


def test_the_one_that_comes_along_has_what_existing_clients_know() -> None:
    flavors = {each.id: each for each in USUAL.flavors}
    standard = flavors["11111111-1111-1111-1111-111111111111"]
    assert (standard.name, standard.cpus, standard.memory_bytes, standard.disk_bytes) == (
        *("sim-standard-4", 4),
        *(8 * 2**30, 100 * 2**30),
    )
    gpu = flavors["22222222-2222-2222-2222-222222222222"]
    assert gpu.gpu is not None
    assert (gpu.name, gpu.gpu.vendor, gpu.gpu.model, gpu.gpu.memory_bytes) == ("sim-gpu-8", "NVIDIA", "L4", 16 * 2**30)
    images = {each.id: each for each in USUAL.images}
    noble = images["33333333-3333-3333-3333-333333333333"]
    assert (noble.name, noble.size_gib, noble.software_versions) == (
        "ubuntu-24.04-amd64",
        20,
        {"kubernetes": "v1.31.0"},
    )
    assert (noble.os.family, noble.os.distro, noble.os.codename, noble.os.version) == (
        *("debian", "ubuntu"),
        *("noble", "24.04"),
    )
    assert noble.created.timestamp() == 1742000000
    with_gpu = images["44444444-4444-4444-4444-444444444444"]
    assert with_gpu.software_versions == {}
    drivers = with_gpu.gpu
    assert drivers is not None
    assert (drivers.driver, drivers.models) == ("550.54.15", ("L4",))
    offered = [each for each in USUAL.images if each.os.version == "24.04" and not each.software_versions]
    assert {each.gpu is None for each in offered if each.architecture == "x86_64"} == {True, False}
    assert [(each.id[:8], each.name) for each in USUAL.external_networks] == [
        ("55555555", "sim-public"),
        ("66666666", "sim-public-secondary"),
    ]


def test_it_has_processors_graphics_and_bare_metal_and_images_for_each() -> None:
    assert any(each.is_baremetal and each.gpu is None for each in USUAL.flavors)
    assert any(each.is_baremetal and each.is_pinned_only for each in USUAL.flavors)
    assert {each.architecture for each in USUAL.flavors} == {"x86_64", "aarch64"}
    assert {each.os.distro for each in USUAL.images} >= {"ubuntu", "debian", "rocky"}
    for flavor in USUAL.flavors:
        needed = {"any", "baremetal" if flavor.is_baremetal else "virtualized"}
        fitting = [
            each for each in USUAL.images if each.architecture == flavor.architecture and each.virtualization in needed
        ]
        assert fitting, f"{flavor.name} has an image"


def test_its_two_clouds_differ_in_capacity_and_share_no_public_address() -> None:
    north, south = load_catalogues().values()
    assert north.hosts != south.hosts
    assert {each.id for each in south.flavors} < {each.id for each in north.flavors}
    for one in map(ipaddress.IPv4Network, north.public_addresses):
        assert not any(one.overlaps(ipaddress.IPv4Network(other)) for other in south.public_addresses)


def test_an_instant_one_offers_the_same_and_takes_no_time() -> None:
    quick = without_delays(USUAL, size=1000)
    assert quick.flavors == USUAL.flavors
    assert quick.latency.is_zero
    assert {each.size for each in quick.hosts.values()} == {1000}
    assert not any((quick.times.boot_s, quick.times.queue_s, quick.times.remove_s, quick.times.snapshot_s))


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "clouds.toml"
    path.write_text(GOOD + "[times]\nboot_s = 7\n[faults]\nerror = 0.5\n")
    (cloud,) = load_catalogues(path).values()
    assert (cloud.name, cloud.times.boot_s, cloud.faults) == ("one", 7.0, {"error": 0.5})
    with pytest.raises(Invalid, match=r"none\.toml cannot be read .*: name an existing"):
        load_catalogues(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (GOOD + "[", "The catalogue is not TOML"),
        (GOOD.replace("cpus", "cpuz"), "flavors[0].cpuz is unknown: write cpus."),
        (GOOD.replace("cpus = 1", "cpus = '1'"), "flavors[0].cpus is not a whole number: write one such as 10, with"),
        (GOOD.replace("cpus = 1", "cpus = true"), "flavors[0].cpus is not a whole number"),
        (GOOD.replace("cpus = 1", "cpus = -1"), "flavors[0].cpus is negative: write 0 or more."),
        (GOOD.replace("cpus = 1\n", ""), "flavors[0].cpus is missing: write a whole number."),
        (GOOD.replace("33333333-3", "3"), "images[0].id is not a UUID: "),
        (GOOD.replace("family", "famly"), "images[0].os.famly is unknown: write family."),
        (
            GOOD + "[[flavors]]" + GOOD.partition("[[flavors]]")[2].partition("[[")[0],
            "flavors[1] has the id or the name",
        ),
        (GOOD.replace("small = {", "smal = {"), "clouds.one.hosts.smal is unknown: write small."),
        (GOOD.replace("/29", "/8"), "clouds.one.public_addresses[0] is not an IPv4 prefix: "),
        (GOOD.replace("198.51.100.0/29", "10.0.0.0/8"), "clouds.one.public_addresses[0] has too many addresses: "),
        (GOOD.partition("[clouds")[0], "clouds is missing: write a table."),
        (GOOD.partition("[clouds")[0] + "[clouds]", "clouds is empty: describe at least one cloud."),
        (
            GOOD + "[latency.methods]\ncreat_server = {}",
            "latency.methods.creat_server is unknown: write create_server.",
        ),
        (GOOD + "[latency]\nusual = { mean = 1 }", "latency.usual.mean is unknown: write mean_s."),
        (GOOD + "[faults]\nerrors = 0.1", "faults.errors is unknown: write error."),
        (GOOD + "[faults]\n'error.fly' = 0.1", "faults.error.fly is unknown: there are "),
        (GOOD + "[faults]\nerror = 2", "faults.error is more than 1: write a share such as 0.01."),
        (
            GOOD.replace("[[flavors]]", "[[flavors]]\narchitecture = 'z80'"),
            "flavors[0].architecture is not an allowed value",
        ),
        (GOOD.replace('["198.51.100.0/29"]', '"198.51.100.0/29"'), "clouds.one.public_addresses is not a list: "),
    ],
)
def test_what_is_wrong_is_named_with_the_remedy(wrong: str, told: str) -> None:
    assert set(parse_catalogues(GOOD)) == {"one"}
    with pytest.raises(Invalid) as rejection:
        parse_catalogues(wrong)
    assert str(rejection.value).startswith(told)
