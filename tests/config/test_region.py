"""What can be said about region: what reaches it, and what is refused."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from remuda.config import settings as effect
from remuda.config.loader import Misconfigured, load
from remuda.config.region_schema import RegionConfig
from remuda.config.schema import Configuration
from remuda.config.settings import catalogues, region_settings
from remuda.kernel.secrets import Secret
from remuda.region.kinds.regions import Region as StoredRegion
from remuda.region.kinds.regions import RegionSimulated
from remuda.region.networks.ipam import vlan_segments
from remuda.region.settings import ConfiguredRegion, RegionSettings
from remuda.store.objects import Metadata

URL = "http://127.0.0.1:8080"
ORGANIZATION = "d4a0d1a2-6a5f-4d0c-9d43-0b3f6f2f6f11"
NODE = "5b8d1c1e-3c1e-4f8e-9a55-0d5cf3b1c5de"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://cluster.example.com"}}]
users: [{name: a, user: {token: canary}}]
"""
CLOUD = """
flavors = [{ id = "11111111-1111-1111-1111-111111111111", name = "one", cpus = 1, memory_gib = 1, disk_gib = 10 }]
images = []
[clouds.NAME.hosts]
one = { count = 1 }
"""


def configured(text: str, tmp_path: Path) -> Configuration:
    path = tmp_path / "remuda.toml"
    path.write_text(text)
    return load({"XDG_DATA_HOME": "/srv"}, file=path).configuration


def settings(text: str, tmp_path: Path) -> RegionSettings:
    return region_settings(configured(text, tmp_path), url=URL)


def test_without_a_word_there_are_two_regions_that_everybody_sees() -> None:
    told = region_settings(Configuration(), url=URL)
    assert [region.name for region in told.regions] == ["sim-north", "sim-south"]
    assert not any(region.spec.organizations for region in told.regions)
    assert (told.url, told.identity_url) == (f"{URL}/region", f"{URL}/identity")


def test_settings_of_the_same_name_have_the_same_default_on_both_sides() -> None:
    told = region_settings(Configuration(), url=URL)
    own = {"regions", "absence_delay"}
    for each in dataclasses.fields(RegionSettings):
        if each.name not in own:
            assert getattr(told, each.name) == getattr(RegionSettings(), each.name), each.name


def test_what_is_set_reaches_region(tmp_path: Path) -> None:
    text = f"""
    [region]
    create_attempts = 5
    poll_idle = "10m"
    initial_polls_per_second = 7
    checks_per_second = 70
    poll_busy = "3s"
    addresses_low_percent = 25
    absence_delay = "7s"
    image_size_gib = 3
    image_targets = ["10.0.0.0/8"]
    private = {{ sim-south = ["{ORGANIZATION}"] }}
    """
    told = settings(text, tmp_path)
    assert (told.create_attempts, told.poll_idle, told.absence_delay) == (
        5,
        timedelta(minutes=10),
        timedelta(seconds=7),
    )
    assert (told.initial_polls_per_second, told.checks_per_second) == (7, 70)
    assert (told.poll_busy, told.addresses_low_percent) == (timedelta(seconds=3), 25)
    assert (told.image_size_gib, told.image_targets) == (3, ("10.0.0.0/8",))
    north, south = told.regions
    assert (north.spec.organizations, south.spec.organizations) == (frozenset(), frozenset({ORGANIZATION}))


def test_a_physical_network_has_the_vlans_that_are_told_or_all(tmp_path: Path) -> None:
    text = f"""
    [region.private]
    sim-north = ["{ORGANIZATION}"]
    [region.physical_networks.sim-north]
    name = "physnet1"
    vlans = [{{ first = 300, last = 300 }}, {{ first = 100, last = 199 }}]
    [region.physical_networks.sim-south]
    name = "physnet2"
    """
    north, south = (_stored(each) for each in settings(text, tmp_path).regions)
    assert [*vlan_segments(north)] == [range(100, 200), range(300, 301)]
    assert [*vlan_segments(south)] == [range(1, 4095)]
    assert north.spec.openstack is not None
    assert north.spec.openstack.network is not None
    assert north.spec.openstack.network.provider_networks is not None
    assert north.spec.openstack.network.provider_networks.physical_network == "physnet1"
    assert north.spec.organizations == {ORGANIZATION}
    assert (north.spec.provider, north.spec.simulated) == ("simulated", RegionSimulated("sim-north"))
    (none, _) = (_stored(each) for each in region_settings(Configuration(), url=URL).regions)
    assert vlan_segments(none) == ()


def _stored(region: ConfiguredRegion) -> StoredRegion:
    return StoredRegion(metadata=Metadata(name=region.name), spec=region.spec)


def test_in_an_instant_cloud_nothing_takes_time(tmp_path: Path) -> None:
    made = configured("[region]\ninstant = true", tmp_path)
    assert all(each.times.boot_s == 0 and each.latency.is_zero for each in catalogues(made.region).values())
    assert region_settings(made, url=URL).absence_delay == timedelta(0)
    assert not any(each.latency.is_zero for each in catalogues(RegionConfig()).values())


def test_without_simulated_clouds_there_are_only_those_that_are_named(tmp_path: Path) -> None:
    assert settings("[region]\nsimulated = false", tmp_path).regions == ()


def test_a_catalogue_of_your_own_takes_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CLOUD.replace("NAME", "shed"))
    assert [each.name for each in settings('[region]\ncatalogue = "mine.toml"', tmp_path).regions] == ["shed"]


def test_a_cluster_is_a_region_with_what_its_file_holds(tmp_path: Path) -> None:
    (tmp_path / "garden").write_text(KUBECONFIG)
    text = f"""
    [region.kubernetes.garden]
    kube_config_file = "garden"
    domain_name = "garden.example.com"
    [[region.kubernetes.garden.nodes]]
    id = "{NODE}"
    name = "large"
    memory_gib = 256
    disk_gib = 1000
    gpu = {{ vendor = "AMD", model = "X", memory_gib = 8 }}
    """
    made = configured(text, tmp_path)
    effect.check(made)
    garden = region_settings(made, url=URL).regions[-1]
    assert (garden.name, garden.spec.provider) == ("garden", "kubernetes")
    cluster = garden.spec.kubernetes
    assert cluster is not None
    assert (cluster.kube_config, cluster.domain_name) == (Secret(KUBECONFIG), "garden.example.com")
    (node,) = cluster.nodes
    assert (node.id, node.memory, node.gpu is not None and node.gpu.memory) == (NODE, 256 * 2**30, 8 * 2**30)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('private = { sim-suth = ["ID"] }', "region.private.sim-suth is not a region: did you mean sim-south?"),
        (
            "simulated = false\nprivate = { here = ['ID'] }",
            "region.private.here is not a region: configure it, or leave this out.",
        ),
        (
            'physical_networks.sim-noth.name = "a"',
            "region.physical_networks.sim-noth is not a region: did you mean sim-north?",
        ),
        (
            'physical_networks.sim-north = { name = "a", vlans = [{ first = 9, last = 8 }] }',
            "region.physical_networks.sim-north.vlans[0] ends before it begins: write the lower VLAN as first.",
        ),
        (
            'physical_networks.sim-north = { name = "a", vlans = [{ first = 5, last = 9 }, { first = 1, last = 5 }] }',
            "region.physical_networks.sim-north.vlans has a VLAN twice: write ranges that do not overlap.",
        ),
        (
            'kubernetes.garden.kube_config_file = "garden"\nphysical_networks.garden.name = "a"',
            "region.physical_networks.garden names a region without networks: leave it out.",
        ),
        ('catalogue = "none.toml"', "region.catalogue: The catalogue PATH/none.toml cannot be read (No such file or "),
        ('catalogue = "odd.toml"', "region.catalogue: flavors is missing: write a list."),
        (
            'catalogue = "climbing.toml"',
            "region.catalogue: clouds.../up is not a name: write up to 63 letters, digits, dashes, dots",
        ),
        (
            'kubernetes.garden.kube_config_file = "none"',
            "region.kubernetes.garden.kube_config_file cannot be read from PATH/none (No such file or directory): ",
        ),
        (
            'kubernetes.garden.kube_config_file = "odd.toml"',
            "region.kubernetes.garden.kube_config_file names an invalid kubeconfig: it needs a current ",
        ),
        (
            'kubernetes.sim-north.kube_config_file = "garden"',
            "region.kubernetes.sim-north has the name of a simulated cloud: give it another one.",
        ),
        (
            'kubernetes."a b".kube_config_file = "garden"',
            "region.kubernetes.a b is not a name: write up to 63 letters, digits, dashes, dots and underscores.",
        ),
    ],
)
def test_what_only_shows_in_the_whole_is_one_sentence(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "garden").write_text(KUBECONFIG)
    (tmp_path / "odd.toml").write_text(
        "canary = 1\nimages = []" if "catalogue" not in text else "images = []\nclouds = {}"
    )
    (tmp_path / "climbing.toml").write_text(CLOUD.replace("NAME", '"../up"'))
    with pytest.raises(Misconfigured) as caught:
        effect.check(configured(f"[region]\n{text.replace('ID', ORGANIZATION)}", tmp_path))
    (problem,) = caught.value.problems
    assert problem.startswith(told.replace("PATH", str(tmp_path))), problem
    assert "canary" not in problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("simulated = 1", "region.simulated in FILE is a number where a boolean is needed: write true or false"),
        ("create_attempts = 0", "region.create_attempts in FILE is not positive: write a whole number of at least 1."),
        ('poll_idle = "0s"', "region.poll_idle in FILE is zero: write a duration of at least 1s."),
        (
            'image_targets = ["inside"]',
            "region.image_targets[0] in FILE is not a network: write one such as 10.0.0.0/8",
        ),
        (
            'physical_networks.sim-north = { name = "a", vlans = [{ first = 0, last = 8 }] }',
            "region.physical_networks.sim-north.vlans[0].first in FILE is not a VLAN: write a whole number from 1 to ",
        ),
        (
            "physical_networks.sim-north = {}",
            "region.physical_networks.sim-north.name in FILE is missing: its name in the cloud.",
        ),
        (
            "addresses_low_percent = 101",
            "region.addresses_low_percent in FILE is not a percentage: write a whole number from 0 to 100.",
        ),
        ("private = { sim-south = [] }", "region.private.sim-south in FILE is empty: add at least one item."),
        (
            'private = { sim-south = ["acme"] }',
            "region.private.sim-south[0] in FILE is not the id of an organization: write the one that the API shows",
        ),
        ("kubernetes.a = {}", "region.kubernetes.a.kube_config_file in FILE is missing: the file with its kubeconfig"),
        (
            'kubernetes.a = { kube_config_file = "k", nodes = [{ id = "x" }] }',
            "region.kubernetes.a.nodes[0].id in FILE is not a UUID: write one in lower case",
        ),
        (
            'kubernetes.a = { kube_config_file = "k", nodes = [{ gpu = { vendor = "Me" } }] }',
            "region.kubernetes.a.nodes[0].gpu.vendor in FILE is not a vendor of GPUs: write NVIDIA or AMD.",
        ),
        ("simulatd = true", "region.simulatd in FILE is not a setting: did you mean region.simulated?"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_remedy(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as caught:
        configured(f"[region]\n{text}", tmp_path)
    assert caught.value.problems[0].startswith(told.replace("FILE", str(tmp_path / "remuda.toml")))
