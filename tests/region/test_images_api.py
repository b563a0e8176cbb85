"""Images over HTTP: who sees which, what may be asked, and how it is told."""

from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.kernel.errors import Unavailable
from remuda.region.images.routes import IMAGES, IMAGES_OF_ORGANIZATION, ROUTES
from remuda.region.images.service import find_image
from remuda.region.kinds.images import ImageImport
from remuda.region.kinds.servers import Server, ServerImage, ServerSpec
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.images import ABSENT, ANN, OWN, SECOND, ImagesEnvironment, image, read
from tests.kit.region.resource_api import (
    ORG,
    OTHER_ORG,
    OTHER_REGION,
    REGION,
    everywhere,
    make_region,
    member,
    rejection,
)

BOB = member("bob@example.com", OTHER_ORG, "region:images CRD")
READER = member("rae@example.com", ORG, "region:images R")
NOBODY = member("noa@example.com", ORG)
ADMIN = everywhere("root@example.com", "region:images CRUD")
CLUSTER = IMAGES_OF_ORGANIZATION.format(organizationID=ORG, regionID=OTHER_REGION)
MINE, THEIRS, GLOBAL = (f"d0000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
OWNED = {"organizationID": ORG, "scope": "owned"}


def forbidden(verb: str, why: str) -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint 'region:images'{why}"


async def names(region_images: ImagesEnvironment, who: Principal, query: Any = ()) -> set[str]:
    listed = {each["metadata"]["id"] for each in read(await region_images.api.ask(who).get(SECOND, query))}
    return listed & {MINE, THEIRS, GLOBAL}


async def furnish(region_images: ImagesEnvironment) -> None:
    await region_images.put(MINE, ORG, name="b-mine")
    await region_images.put(THEIRS, OTHER_ORG, name="a-theirs")
    await region_images.put(GLOBAL, name="c-global")


QUERIES: list[tuple[Principal, list[tuple[str, str]], set[str]]] = [
    (ANN, [], {GLOBAL}),
    (NOBODY, [], {GLOBAL}),
    (ADMIN, [], {GLOBAL}),
    (ANN, [("scope", "owned")], {GLOBAL}),
    (ANN, [("scope", "available")], {GLOBAL}),
    (ANN, [("organizationID", ORG)], {GLOBAL, MINE}),
    (ANN, [("organizationID", ORG), ("scope", "available")], {GLOBAL, MINE}),
    (ANN, [("organizationID", ORG), ("scope", "owned")], {MINE}),
    (ANN, [("organizationID", OTHER_ORG)], {GLOBAL}),
    (ANN, [("organizationID", OTHER_ORG), ("scope", "owned")], set()),
    (ANN, [("organizationID", ORG), ("organizationID", OTHER_ORG)], {GLOBAL, MINE}),
    (ANN, [("organizationID", "nonsense"), ("organizationID", ORG), ("scope", "owned")], {MINE}),
    (ANN, [("organizationID", "nonsense"), ("scope", "owned")], set()),
    (ADMIN, [("organizationID", ""), ("scope", "owned")], set()),
    (ADMIN, [("organizationID", "nonsense")], {GLOBAL}),
    (NOBODY, [("organizationID", ORG)], {GLOBAL}),
    (ADMIN, [("organizationID", ORG), ("organizationID", OTHER_ORG), ("scope", "owned")], {MINE, THEIRS}),
    (ANN, [("organizationID", ORG), ("status", "ready")], {GLOBAL, MINE}),
    (ANN, [("organizationID", ORG), ("status", "pending"), ("status", "failed")], set()),
    (ANN, [("organizationID", ORG), ("status", "pending"), ("status", "ready")], {GLOBAL, MINE}),
]


@pytest.mark.parametrize(("who", "query", "seen"), QUERIES)
@options(at_work=False)
async def test_a_query_shows_what_nobody_owns_and_what_the_callers_organizations_own(
    region_images: ImagesEnvironment, who: Principal, query: list[tuple[str, str]], seen: set[str]
) -> None:
    await furnish(region_images)
    assert await names(region_images, who, query) == seen


@pytest.mark.parametrize("query", [{"scope": "mine"}, {"status": "done"}])
@options(at_work=False)
async def test_a_query_for_what_there_is_not_is_refused(
    region_images: ImagesEnvironment, query: dict[str, str]
) -> None:
    assert (await region_images.api.ask(ANN).get(SECOND, query)).status == 400


@options(at_work=False)
async def test_lists_are_in_the_order_of_names_and_only_the_first_generations_may_be_kept(
    region_images: ImagesEnvironment,
) -> None:
    await furnish(region_images)
    client = region_images.api.ask(ANN)
    queried = await client.get(SECOND, {"organizationID": ORG})
    listed = [each["metadata"]["name"] for each in read(queried)]
    assert listed == sorted(listed)
    assert queried.headers["cache-control"] == "no-cache"
    kept = await client.get(OWN)
    assert kept.headers["cache-control"] == "private, max-age=86400"
    assert {each["metadata"]["id"] for each in read(kept)} >= {MINE, GLOBAL}
    assert THEIRS not in {each["metadata"]["id"] for each in read(kept)}


@options(at_work=False)
async def test_the_first_generation_lists_only_what_is_ready(region_images: ImagesEnvironment) -> None:
    name = await region_images.begin()
    assert name not in {each["metadata"]["id"] for each in read(await region_images.api.ask(ANN).get(OWN))}
    assert {each["status"]["state"] for each in read(await region_images.api.ask(ANN).get(OWN))} == {"ready"}


@options(at_work=False)
async def test_a_region_that_is_not_seen_is_not_there_and_one_without_images_says_so(
    region_images: ImagesEnvironment,
) -> None:
    await make_region(region_images.store, ABSENT, called="hidden", organizations=[OTHER_ORG])
    client = region_images.api.ask(ANN)
    hidden = IMAGES_OF_ORGANIZATION.format(organizationID=ORG, regionID=ABSENT)
    for reply in (
        await client.get(IMAGES.format(regionID=ABSENT)),
        await client.get(hidden),
        await client.post(hidden, image()),
        await client.delete(f"{hidden}/{MINE}"),
    ):
        assert rejection(reply) == (404, "resource not found")
    for reply in (
        await client.get(IMAGES.format(regionID=OTHER_REGION)),
        await client.get(CLUSTER),
        await client.post(CLUSTER, image()),
        await client.delete(f"{CLUSTER}/{MINE}"),
    ):
        assert rejection(reply) == (400, "region is not valid for this endpoint")
    assert region_images.web.asked == []


@options(at_work=False)
async def test_permissions_are_validated_before_anything_is_looked_at(region_images: ImagesEnvironment) -> None:
    missing, strange = " is not permitted", " — organization is not in this principal's accessible set"
    for path in (OWN, CLUSTER, OWN.replace(REGION, ABSENT)):
        assert rejection(await region_images.api.ask(NOBODY).get(path)) == forbidden("read", missing)
        assert rejection(await region_images.api.ask(READER).post(path, image())) == forbidden("create", missing)
        assert rejection(await region_images.api.ask(READER).delete(f"{path}/{MINE}")) == forbidden("delete", missing)
        assert rejection(await region_images.api.ask(BOB).post(path, image())) == forbidden("create", strange)
    assert (await region_images.api.ask(None).get(SECOND)).status == 401
    assert region_images.web.asked == []


@options(at_work=False)
async def test_a_new_image_is_pending_and_says_what_was_asked_for(region_images: ImagesEnvironment) -> None:
    wanted = image(
        softwareVersions={"kubernetes": "v1.31.0"},
        gpu={"vendor": "NVIDIA", "driver": "550.54", "models": ["H100", "A100"]},
        os={"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04", "codename": "noble"},
    )
    wanted["metadata"]["tags"] = [{"name": "team", "value": "blue"}]
    reply = await region_images.api.ask(ANN).post(OWN, wanted)
    assert reply.status == 200
    made = reply.json
    assert made["status"] == {"state": "pending"}
    assert made["spec"] == {key: each for key, each in wanted["spec"].items() if key != "uri"} | {"sizeGiB": 0}
    assert made["metadata"]["tags"] == [
        {"name": "team", "value": "blue"},
        {"name": "images.unikorn-cloud.org:source", "value": "import"},
        {"name": "images.unikorn-cloud.org:organization-id", "value": ORG},
    ]
    assert "top-secret" not in reply.body.decode()
    (listed,) = read(await region_images.api.ask(ANN).get(SECOND, OWNED))
    assert listed == made
    assert await region_images.states() == ["pending"]
    assert read(await region_images.api.ask(BOB).get(SECOND, OWNED)) == []


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "a GPU without models": (
        {"gpu": {"vendor": "NVIDIA", "driver": "550"}},
        422,
        "spec.gpu.models names no model: name at least one that the driver is for.",
    ),
    "a GPU with a model without a name": (
        {"gpu": {"vendor": "NVIDIA", "driver": "550", "models": [""]}},
        422,
        "spec.gpu.models names no model: name at least one that the driver is for.",
    ),
    "a GPU without a driver": (
        {"gpu": {"vendor": "AMD", "driver": "", "models": ["MI300"]}},
        422,
        "spec.gpu.driver is empty: name the version of the driver that is on the image.",
    ),
    "another vendor": ({"gpu": {"vendor": "Acme", "driver": "1", "models": ["x"]}}, 400, "/spec/gpu/vendor"),
    "another kernel": (
        {"os": {"kernel": "hurd", "family": "debian", "distro": "debian", "version": "1"}},
        400,
        "/spec/os/kernel",
    ),
    "another version": ({"softwareVersions": {"kubernetes": "1.31"}}, 400, "/spec/softwareVersions/kubernetes"),
    "an address that is a number": ({"uri": 7}, 400, "/spec/uri"),
}


@pytest.mark.parametrize(("spec", "status", "text"), WRONG.values(), ids=WRONG)
@options(at_work=False)
async def test_what_no_image_can_be_is_refused_before_anything_is_fetched(
    region_images: ImagesEnvironment, spec: dict[str, Any], status: int, text: str
) -> None:
    told = rejection(await region_images.api.ask(ANN).post(OWN, image(**spec)))
    assert told[0] == status
    assert text in told[1]
    assert region_images.web.asked == []
    assert (await region_images.store.list(ImageImport)).items == []


@pytest.mark.parametrize(
    "tag",
    ["images.unikorn-cloud.org:source", "images.unikorn-cloud.org:organization-id", "compute.unikorn-cloud.org/x"],
)
@options(at_work=False)
async def test_tags_of_services_are_not_the_callers_to_give(region_images: ImagesEnvironment, tag: str) -> None:
    wanted = image()
    wanted["metadata"]["tags"] = [{"name": tag, "value": "x"}]
    status, told = rejection(await region_images.api.ask(ANN).post(OWN, wanted))
    assert (status, tag in told) == (422, True)
    assert (await region_images.store.list(ImageImport)).items == []


@options(at_work=False)
async def test_the_same_request_again_makes_no_second_image(region_images: ImagesEnvironment) -> None:
    client = region_images.api.ask(ANN)
    first = await client.post(OWN, image(), idempotency_key="once")
    again = await client.post(OWN, image(), idempotency_key="once")
    assert (first.status, again.status) == (200, 200)
    assert first.json == again.json
    assert len((await region_images.store.list(ImageImport)).items) == 1
    assert region_images.web.asked == ["beginning"]


@options(at_work=False)
async def test_only_an_organizations_own_image_can_be_given_up(region_images: ImagesEnvironment) -> None:
    await furnish(region_images)
    client = region_images.api.ask(ANN)
    (built_in, *_) = [each for each in await region_images.at_cloud.images() if each.id not in {MINE, THEIRS, GLOBAL}]
    for name in (THEIRS, GLOBAL, ABSENT, built_in.id):
        assert rejection(await client.delete(f"{OWN}/{name}")) == (404, "resource not found")
    name = await region_images.begin()
    elsewhere = IMAGES_OF_ORGANIZATION.format(organizationID=OTHER_ORG, regionID=REGION)
    assert rejection(await region_images.api.ask(ADMIN).delete(f"{elsewhere}/{name}")) == (404, "resource not found")
    assert (await client.delete(f"{OWN}/{MINE}")).status == 202
    assert (await client.delete(f"{OWN}/{MINE}")).status == 404
    assert await names(region_images, ANN, {"organizationID": ORG}) == {GLOBAL}
    assert {each.id for each in await region_images.owned()} == {THEIRS}


@options(at_work=False)
async def test_an_image_that_a_server_is_made_of_stays(region_images: ImagesEnvironment) -> None:
    await furnish(region_images)
    spec = ServerSpec(flavor_id="flavor", image=ServerImage(id=MINE))
    made = await region_images.store.create(Server(metadata=Metadata(name=ABSENT), spec=spec))
    told = rejection(await region_images.api.ask(ANN).delete(f"{OWN}/{MINE}"))
    assert told == (409, f"The image {MINE} is in use. Remove what uses it first.")
    assert MINE in {each.id for each in await region_images.owned()}
    await region_images.store.delete(Server, made.name, uid=made.uid)
    assert (await region_images.api.ask(ANN).delete(f"{OWN}/{MINE}")).status == 202


@options(at_work=False)
async def test_an_image_on_its_way_is_found_and_not_ready_and_one_being_deleted_is_failed(
    region_images: ImagesEnvironment,
) -> None:
    cloud = await region_images.clouds.get(REGION)
    name = await region_images.begin()
    assert await find_image(cloud, ORG, name) is None
    found = await find_image(cloud, ORG, name, store=region_images.store)
    assert found is not None
    assert found.state == "pending"
    assert await find_image(cloud, OTHER_ORG, name, store=region_images.store) is None
    await region_images.put(name, ORG)
    found = await find_image(cloud, ORG, name, store=region_images.store)
    assert found is not None
    assert found.state == "ready"
    assert (await region_images.api.ask(ANN).delete(f"{OWN}/{name}")).status == 202
    found = await find_image(cloud, ORG, name, store=region_images.store)
    assert found is not None
    assert found.state == "failed"
    await region_images.world.clock.sleep(3)
    assert await region_images.states() == ["failed"]


@options(at_work=False)
async def test_a_new_image_of_the_clouds_is_found_although_its_list_is_a_moment_old(
    region_images: ImagesEnvironment,
) -> None:
    cloud = await region_images.clouds.get(REGION)
    await cloud.images()
    await region_images.put(MINE, ORG)
    assert MINE not in {each.id for each in await cloud.images()}
    assert await find_image(cloud, ORG, MINE) is not None
    assert await find_image(cloud, OTHER_ORG, MINE) is None


@options(at_work=False)
async def test_a_request_that_cannot_be_validated_is_told_as_that(region_images: ImagesEnvironment) -> None:
    async def ill() -> None:
        raise Unavailable("The cloud is ill: try again.")

    region_images.cloud.provider.images.images = ill  # type: ignore[union-attr,method-assign]  # as an ill one
    assert (await region_images.api.ask(ANN).get(SECOND)).status == 503


def test_every_operation_of_the_contract_is_there() -> None:
    served = {(route.method, route.path) for route in ROUTES}
    assert served == {
        ("GET", "/api/v2/regions/{regionID}/images"),
        ("GET", "/api/v1/organizations/{organizationID}/regions/{regionID}/images"),
        ("POST", "/api/v1/organizations/{organizationID}/regions/{regionID}/images"),
        ("DELETE", "/api/v1/organizations/{organizationID}/regions/{regionID}/images/{imageID}"),
    }
