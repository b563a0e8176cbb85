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
from tests.region.images_ground import ABSENT, ANN, OWN, SECOND, Ground, image, on_ground, read
from tests.region.room import ORG, OTHER_ORG, OTHER_REGION, REGION, everywhere, make_region, member, refusal

BOB = member("bob@example.com", OTHER_ORG, "region:images CRD")
READER = member("rae@example.com", ORG, "region:images R")
NOBODY = member("noa@example.com", ORG)
ADMIN = everywhere("root@example.com", "region:images CRUD")
CLUSTER = IMAGES_OF_ORGANIZATION.format(organizationID=ORG, regionID=OTHER_REGION)
MINE, THEIRS, GLOBAL = (f"d0000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
OWNED = {"organizationID": ORG, "scope": "owned"}


def forbidden(verb: str, why: str) -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint 'region:images'{why}"


async def names(ground: Ground, who: Principal, query: Any = ()) -> set[str]:
    listed = {each["metadata"]["id"] for each in read(await ground.room.ask(who).get(SECOND, query))}
    return listed & {MINE, THEIRS, GLOBAL}


async def furnish(ground: Ground) -> None:
    await ground.put(MINE, ORG, name="b-mine")
    await ground.put(THEIRS, OTHER_ORG, name="a-theirs")
    await ground.put(GLOBAL, name="c-global")


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
def test_a_query_shows_what_nobody_owns_and_what_the_callers_organizations_own(
    who: Principal, query: list[tuple[str, str]], seen: set[str]
) -> None:
    async def scenario(ground: Ground) -> None:
        await furnish(ground)
        assert await names(ground, who, query) == seen

    on_ground(scenario, at_work=False)


@pytest.mark.parametrize("query", [{"scope": "mine"}, {"status": "done"}])
def test_a_query_for_what_there_is_not_is_refused(query: dict[str, str]) -> None:
    async def scenario(ground: Ground) -> None:
        assert (await ground.room.ask(ANN).get(SECOND, query)).status == 400

    on_ground(scenario, at_work=False)


def test_lists_are_in_the_order_of_names_and_only_the_first_generations_may_be_kept() -> None:
    async def scenario(ground: Ground) -> None:
        await furnish(ground)
        client = ground.room.ask(ANN)
        queried = await client.get(SECOND, {"organizationID": ORG})
        listed = [each["metadata"]["name"] for each in read(queried)]
        assert listed == sorted(listed)
        assert queried.headers["cache-control"] == "no-cache"
        kept = await client.get(OWN)
        assert kept.headers["cache-control"] == "private, max-age=86400"
        assert {each["metadata"]["id"] for each in read(kept)} >= {MINE, GLOBAL}
        assert THEIRS not in {each["metadata"]["id"] for each in read(kept)}

    on_ground(scenario, at_work=False)


def test_the_first_generation_lists_only_what_is_ready() -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.begin()
        assert name not in {each["metadata"]["id"] for each in read(await ground.room.ask(ANN).get(OWN))}
        assert {each["status"]["state"] for each in read(await ground.room.ask(ANN).get(OWN))} == {"ready"}

    on_ground(scenario, at_work=False)


def test_a_region_that_is_not_seen_is_not_there_and_one_without_images_says_so() -> None:
    async def scenario(ground: Ground) -> None:
        await make_region(ground.store, ABSENT, called="hidden", organizations=[OTHER_ORG])
        client = ground.room.ask(ANN)
        hidden = IMAGES_OF_ORGANIZATION.format(organizationID=ORG, regionID=ABSENT)
        for reply in (
            await client.get(IMAGES.format(regionID=ABSENT)),
            await client.get(hidden),
            await client.post(hidden, image()),
            await client.delete(f"{hidden}/{MINE}"),
        ):
            assert refusal(reply) == (404, "resource not found")
        for reply in (
            await client.get(IMAGES.format(regionID=OTHER_REGION)),
            await client.get(CLUSTER),
            await client.post(CLUSTER, image()),
            await client.delete(f"{CLUSTER}/{MINE}"),
        ):
            assert refusal(reply) == (400, "region is not valid for this endpoint")
        assert ground.web.asked == []

    on_ground(scenario, at_work=False)


def test_rights_are_judged_before_anything_is_looked_at() -> None:
    async def scenario(ground: Ground) -> None:
        missing, strange = " is not permitted", " — organization is not in this principal's accessible set"
        for path in (OWN, CLUSTER, OWN.replace(REGION, ABSENT)):
            assert refusal(await ground.room.ask(NOBODY).get(path)) == forbidden("read", missing)
            assert refusal(await ground.room.ask(READER).post(path, image())) == forbidden("create", missing)
            assert refusal(await ground.room.ask(READER).delete(f"{path}/{MINE}")) == forbidden("delete", missing)
            assert refusal(await ground.room.ask(BOB).post(path, image())) == forbidden("create", strange)
        assert (await ground.room.ask(None).get(SECOND)).status == 401
        assert ground.web.asked == []

    on_ground(scenario, at_work=False)


def test_a_new_image_is_pending_and_says_what_was_asked_for() -> None:
    async def scenario(ground: Ground) -> None:
        wanted = image(
            softwareVersions={"kubernetes": "v1.31.0"},
            gpu={"vendor": "NVIDIA", "driver": "550.54", "models": ["H100", "A100"]},
            os={"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04", "codename": "noble"},
        )
        wanted["metadata"]["tags"] = [{"name": "team", "value": "blue"}]
        reply = await ground.room.ask(ANN).post(OWN, wanted)
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
        (listed,) = read(await ground.room.ask(ANN).get(SECOND, OWNED))
        assert listed == made
        assert await ground.states() == ["pending"]
        assert read(await ground.room.ask(BOB).get(SECOND, OWNED)) == []

    on_ground(scenario, at_work=False)


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
def test_what_no_image_can_be_is_refused_before_anything_is_fetched(
    spec: dict[str, Any], status: int, text: str
) -> None:
    async def scenario(ground: Ground) -> None:
        told = refusal(await ground.room.ask(ANN).post(OWN, image(**spec)))
        assert told[0] == status
        assert text in told[1]
        assert ground.web.asked == []
        assert (await ground.store.list(ImageImport)).items == []

    on_ground(scenario, at_work=False)


@pytest.mark.parametrize(
    "tag",
    ["images.unikorn-cloud.org:source", "images.unikorn-cloud.org:organization-id", "compute.unikorn-cloud.org/x"],
)
def test_tags_of_services_are_not_the_callers_to_give(tag: str) -> None:
    async def scenario(ground: Ground) -> None:
        wanted = image()
        wanted["metadata"]["tags"] = [{"name": tag, "value": "x"}]
        status, told = refusal(await ground.room.ask(ANN).post(OWN, wanted))
        assert (status, tag in told) == (422, True)
        assert (await ground.store.list(ImageImport)).items == []

    on_ground(scenario, at_work=False)


def test_the_same_request_again_makes_no_second_image() -> None:
    async def scenario(ground: Ground) -> None:
        client = ground.room.ask(ANN)
        first = await client.post(OWN, image(), idempotency_key="once")
        again = await client.post(OWN, image(), idempotency_key="once")
        assert (first.status, again.status) == (200, 200)
        assert first.json == again.json
        assert len((await ground.store.list(ImageImport)).items) == 1
        assert ground.web.asked == ["beginning"]

    on_ground(scenario, at_work=False)


def test_only_an_organizations_own_image_can_be_given_up() -> None:
    async def scenario(ground: Ground) -> None:
        await furnish(ground)
        client = ground.room.ask(ANN)
        (built_in, *_) = [each for each in await ground.at_cloud.images() if each.id not in {MINE, THEIRS, GLOBAL}]
        for name in (THEIRS, GLOBAL, ABSENT, built_in.id):
            assert refusal(await client.delete(f"{OWN}/{name}")) == (404, "resource not found")
        name = await ground.begin()
        elsewhere = IMAGES_OF_ORGANIZATION.format(organizationID=OTHER_ORG, regionID=REGION)
        assert refusal(await ground.room.ask(ADMIN).delete(f"{elsewhere}/{name}")) == (404, "resource not found")
        assert (await client.delete(f"{OWN}/{MINE}")).status == 202
        assert (await client.delete(f"{OWN}/{MINE}")).status == 404
        assert await names(ground, ANN, {"organizationID": ORG}) == {GLOBAL}
        assert {each.id for each in await ground.owned()} == {THEIRS}

    on_ground(scenario, at_work=False)


def test_an_image_that_a_server_is_made_of_stays() -> None:
    async def scenario(ground: Ground) -> None:
        await furnish(ground)
        spec = ServerSpec(flavor_id="flavor", image=ServerImage(id=MINE))
        made = await ground.store.create(Server(metadata=Metadata(name=ABSENT), spec=spec))
        told = refusal(await ground.room.ask(ANN).delete(f"{OWN}/{MINE}"))
        assert told == (409, f"The image {MINE} is in use: remove what uses it first.")
        assert MINE in {each.id for each in await ground.owned()}
        await ground.store.delete(Server, made.name, uid=made.uid)
        assert (await ground.room.ask(ANN).delete(f"{OWN}/{MINE}")).status == 202

    on_ground(scenario, at_work=False)


def test_an_image_on_its_way_is_found_and_not_ready_and_one_being_deleted_is_failed() -> None:
    async def scenario(ground: Ground) -> None:
        cloud = await ground.clouds.get(REGION)
        name = await ground.begin()
        assert await find_image(cloud, ORG, name) is None
        found = await find_image(cloud, ORG, name, store=ground.store)
        assert found is not None
        assert found.state == "pending"
        assert await find_image(cloud, OTHER_ORG, name, store=ground.store) is None
        await ground.put(name, ORG)
        found = await find_image(cloud, ORG, name, store=ground.store)
        assert found is not None
        assert found.state == "ready"
        assert (await ground.room.ask(ANN).delete(f"{OWN}/{name}")).status == 202
        found = await find_image(cloud, ORG, name, store=ground.store)
        assert found is not None
        assert found.state == "failed"
        await ground.world.clock.sleep(3)
        assert await ground.states() == ["failed"]

    on_ground(scenario, at_work=False)


def test_a_new_image_of_the_clouds_is_found_although_its_list_is_a_moment_old() -> None:
    async def scenario(ground: Ground) -> None:
        cloud = await ground.clouds.get(REGION)
        await cloud.images()
        await ground.put(MINE, ORG)
        assert MINE not in {each.id for each in await cloud.images()}
        assert await find_image(cloud, ORG, MINE) is not None
        assert await find_image(cloud, OTHER_ORG, MINE) is None

    on_ground(scenario, at_work=False)


def test_a_request_that_cannot_be_judged_is_told_as_that() -> None:
    async def scenario(ground: Ground) -> None:
        async def ill() -> None:
            raise Unavailable("The cloud is ill: try again.")

        ground.cloud.provider.images.images = ill  # type: ignore[union-attr,method-assign]  # as an ill one
        assert (await ground.room.ask(ANN).get(SECOND)).status == 503

    on_ground(scenario, at_work=False)


def test_every_operation_of_the_contract_is_there() -> None:
    served = {(route.method, route.path) for route in ROUTES}
    assert served == {
        ("GET", "/api/v2/regions/{regionID}/images"),
        ("GET", "/api/v1/organizations/{organizationID}/regions/{regionID}/images"),
        ("POST", "/api/v1/organizations/{organizationID}/regions/{regionID}/images"),
        ("DELETE", "/api/v1/organizations/{organizationID}/regions/{regionID}/images/{imageID}"),
        ("POST", "/api/v2/servers/{serverID}/snapshot"),
    }
