"""Which example instance scripts are told of: the smallest that anybody can have."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from remuda.app.services import example_instance
from remuda.config.region_schema import RegionConfig
from remuda.config.settings import catalogues
from remuda.identity.credentials import ExampleInstance
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.regions import RegionOrganization, RegionSecurity, RegionSimulated, RegionSpec
from remuda.region.settings import ConfiguredRegion

CLOUDS = catalogues(RegionConfig())
SMALL, STANDARD = "a1f0c0de-0001-4000-8000-000000000001", "11111111-1111-1111-1111-111111111111"
NOBLE, JAMMY = "b1f0c0de-0006-4000-8000-000000000006", "b1f0c0de-0001-4000-8000-000000000001"
DEBIAN = "b1f0c0de-0003-4000-8000-000000000003"


def chosen(clouds: Mapping[str, SimCatalogue] = CLOUDS, private: tuple[str, ...] = ()) -> ExampleInstance | None:
    security = RegionSecurity((RegionOrganization("somebody"),))
    regions = [
        ConfiguredRegion(
            name=name,
            spec=RegionSpec(
                provider="simulated",
                simulated=RegionSimulated(name),
                security=security if name in private else None,
            ),
        )
        for name in reversed(list(clouds))
    ]
    return example_instance(regions, clouds)


def with_changed(**changes: Any) -> dict[str, SimCatalogue]:
    return {"sim-north": dataclasses.replace(CLOUDS["sim-north"], **changes)}


def test_it_is_the_smallest_flavor_with_the_newest_ubuntu_in_the_first_region_by_name() -> None:
    assert chosen() == ExampleInstance(region_id=region_id("sim-north"), flavor_id=SMALL, image_id=NOBLE)


def test_a_region_that_not_everybody_sees_is_passed_over() -> None:
    found = chosen(private=("sim-north",))
    assert found is not None
    assert found.region_id == region_id("sim-south")
    assert chosen(private=("sim-north", "sim-south")) is None


def test_a_flavor_that_not_everybody_can_use_is_passed_over() -> None:
    flavors = [dataclasses.replace(each, is_pinned_only=each.id == SMALL) for each in CLOUDS["sim-north"].flavors]
    found = chosen(with_changed(flavors=tuple(flavors)))
    assert found is not None
    assert found.flavor_id == STANDARD


def test_where_there_is_no_ubuntu_another_image_that_fits_does() -> None:
    images = {each.id: each for each in CLOUDS["sim-north"].images}
    old = chosen(with_changed(images=(images[DEBIAN], images[JAMMY])))
    other = chosen(with_changed(images=(images[DEBIAN],)))
    assert old is not None
    assert other is not None
    assert (old.image_id, other.image_id) == (JAMMY, DEBIAN)
    assert chosen(with_changed(images=())) is None
