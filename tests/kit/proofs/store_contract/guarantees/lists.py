"""What lists promise: order, selection, pages."""

from remuda.kernel.errors import Invalid, NotFound
from remuda.store.contract import NAME_INDEX, Page, field_index, label_index
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.proofs.store_contract.steps import (
    gone,
    names_of,
    refused,
    request_deletion,
    watching,
    with_metadata,
    with_spec,
)
from tests.kit.sample_kinds import Corral, Horse, HorseSpec, Pasture, corral, horse, pasture

GUARANTEES: list[Guarantee] = []


async def pages_of(harness: Harness, *, limit: int) -> list[Page[Pasture]]:
    pages = [await harness.store.list(Pasture, limit=limit)]
    while pages[-1].next is not None:
        pages.append(await harness.store.list(Pasture, limit=limit, after=pages[-1].next))
    return pages


@guarantee(GUARANTEES, "Get of what is not there fails with NotFound.")
async def get_of_the_absent_is_not_found(harness: Harness) -> None:
    await harness.store.create(corral("home"))
    await refused(NotFound, harness.store.get(Pasture, "home"))


@guarantee(GUARANTEES, "A list is in the order of names.")
async def lists_are_in_the_order_of_names(harness: Harness) -> None:
    for name in ("m", "z", "a", "m-1", "m.1", "10", "9"):
        await harness.store.create(pasture(name))
    assert await names_of(harness, Pasture) == ["10", "9", "a", "m", "m-1", "m.1", "z"]


@guarantee(GUARANTEES, "A list holds the objects of its kind, and of no other.")
async def lists_are_of_one_kind(harness: Harness) -> None:
    await harness.store.create(pasture("home"))
    await harness.store.create(corral("pen"))
    assert await names_of(harness, Corral) == ["pen"]


@guarantee(GUARANTEES, "A list by a label holds the objects that carry it with that value.")
async def lists_are_selected_by_a_label(harness: Harness) -> None:
    for name, labels in {"a": {"herd": "north"}, "b": {"herd": "south"}, "c": {}, "d": {"herd": "north"}}.items():
        await harness.store.create(horse(name, labels=labels))
    assert await names_of(harness, Horse, labels={"herd": "north"}) == ["a", "d"]
    assert await names_of(harness, Horse, labels={"herd": "west"}) == []
    assert await names_of(harness, Horse, labels={"breed": "north"}) == []


@guarantee(GUARANTEES, "A list by several labels holds the objects that carry all of them.")
async def lists_are_selected_by_all_labels(harness: Harness) -> None:
    both = {"herd": "north", "tame": "yes"}
    for name, labels in {"a": both, "b": {"herd": "north"}, "c": {"tame": "yes"}, "d": both}.items():
        await harness.store.create(horse(name, labels=labels))
    assert await names_of(harness, Horse, labels=both) == ["a", "d"]


@guarantee(GUARANTEES, "A list by a declared index holds the objects that lie under that value.")
async def lists_are_selected_by_an_index(harness: Harness) -> None:
    for name, colour in {"a": "grey", "b": "bay", "c": "grey"}.items():
        await harness.store.create(horse(name, spec=HorseSpec(colour=colour)))
    assert await names_of(harness, Horse, index=("colour", "grey")) == ["a", "c"]


@guarantee(GUARANTEES, "A list by an index that the kind does not declare is Invalid.")
async def an_undeclared_index_is_refused(harness: Harness) -> None:
    rejection = await refused(Invalid, harness.store.list(Horse, index=("color", "grey")))
    assert rejection.field == "the index color"


@guarantee(GUARANTEES, "A list by label and index holds the objects that both select.")
async def labels_and_indexes_select_together(harness: Harness) -> None:
    grey = HorseSpec(colour="grey")
    await harness.store.create(horse("a", labels={"herd": "north"}, spec=grey))
    await harness.store.create(horse("b", labels={"herd": "south"}, spec=grey))
    await harness.store.create(horse("c", labels={"herd": "north"}))
    assert await names_of(harness, Horse, labels={"herd": "north"}, index=("colour", "grey")) == ["a"]


@guarantee(GUARANTEES, "A list by any of several index entries holds the objects with one of them, in order and once.")
async def lists_are_selected_by_any_entry(harness: Harness) -> None:
    grey = HorseSpec(colour="grey")
    for name, herd in {"a": "north", "b": "south", "c": "west", "d": "north", "e": "south", "f": "east"}.items():
        await harness.store.create(horse(name, labels={"herd": herd}, spec=grey if name in "af" else HorseSpec()))
    herds = [(label_index("herd"), "north"), (label_index("herd"), "south"), (label_index("breed"), "north")]
    assert await names_of(harness, Horse, any_of=herds) == ["a", "b", "d", "e"]
    assert await names_of(harness, Horse, any_of=[*herds, (field_index("colour"), "grey")]) == ["a", "b", "d", "e", "f"]
    assert await names_of(harness, Horse, any_of=[*herds[:1], (NAME_INDEX, "c"), (NAME_INDEX, "z")]) == ["a", "c", "d"]
    assert await names_of(harness, Horse, any_of=herds, labels={"herd": "south"}) == ["b", "e"]
    assert await names_of(harness, Horse, any_of=[(NAME_INDEX, "a")], labels={"herd": "south"}) == []
    assert await names_of(harness, Horse, any_of=herds, index=("colour", "grey")) == ["a"]
    assert await names_of(harness, Horse, any_of=()) == []
    page = await harness.store.list(Horse, any_of=herds, limit=3)
    rest = await harness.store.list(Horse, any_of=herds, limit=3, after=page.next)
    assert ([each.name for each in (*page.items, *rest.items)], rest.next) == (["a", "b", "d", "e"], None)


@guarantee(GUARANTEES, "A list by label follows the labels.")
async def selections_follow_the_labels(harness: Harness) -> None:
    first = await harness.store.create(horse("a", labels={"herd": "north"}))
    second = await harness.store.create(horse("b", labels={"herd": "north"}))
    await harness.store.update(with_metadata(first, labels={"herd": "south"}))
    await harness.store.update(with_metadata(second, labels={}))
    assert await names_of(harness, Horse, labels={"herd": "north"}) == []
    assert await names_of(harness, Horse, labels={"herd": "south"}) == ["a"]


@guarantee(GUARANTEES, "A list by index follows what the index is made from.")
async def selections_follow_the_index(harness: Harness) -> None:
    created = await harness.store.create(horse("a", spec=HorseSpec(colour="grey")))
    await harness.store.update(with_spec(created, colour="white"))
    assert await names_of(harness, Horse, index=("colour", "grey")) == []
    assert await names_of(harness, Horse, index=("colour", "white")) == ["a"]


@guarantee(GUARANTEES, "The pages of a list hold everything once, and no page more than its limit.")
async def pages_hold_everything_once(harness: Harness) -> None:
    names = [f"pasture-{number}" for number in range(7)]
    for name in names:
        await harness.store.create(pasture(name))
    for limit in (1, 3, 7, 8):
        pages = await pages_of(harness, limit=limit)
        assert [item.name for page in pages for item in page.items] == names
        assert [len(page.items) for page in pages if len(page.items) > limit or not page.items] == []


@guarantee(GUARANTEES, "The pages of a selection hold all that it selects.")
async def pages_of_a_selection_hold_all_of_it(harness: Harness) -> None:
    for number in range(8):
        labels = {"even": "yes"} if number % 2 == 0 else {}
        await harness.store.create(pasture(f"pasture-{number}", labels=labels))
    first = await harness.store.list(Pasture, labels={"even": "yes"}, limit=3)
    rest = await harness.store.list(Pasture, labels={"even": "yes"}, limit=3, after=first.next)
    assert [item.name for item in (*first.items, *rest.items)] == ["pasture-0", "pasture-2", "pasture-4", "pasture-6"]
    assert rest.next is None


@guarantee(
    GUARANTEES, "Pages go by key: what comes or goes between two of them makes them neither repeat nor skip the others."
)
async def pages_go_by_key(harness: Harness) -> None:
    created = {name: await harness.store.create(pasture(name)) for name in ("b", "c", "d", "e", "f")}
    first = await harness.store.list(Pasture, limit=2)
    for name in ("a", "bb"):
        await harness.store.create(pasture(name))
    await request_deletion(harness, created["c"])
    await gone(harness, created["c"])
    rest = await harness.store.list(Pasture, limit=9, after=first.next)
    assert [item.name for item in rest.items] == ["d", "e", "f"]


@guarantee(GUARANTEES, "All pages of a list have its first page's version.")
async def pages_have_the_first_pages_version(harness: Harness) -> None:
    for name in ("a", "b", "c"):
        await harness.store.create(pasture(name))
    first = await harness.store.list(Pasture, limit=1)
    await harness.store.create(pasture("d"))
    second = await harness.store.list(Pasture, limit=1, after=first.next)
    await harness.store.create(pasture("e"))
    third = await harness.store.list(Pasture, limit=1, after=second.next)
    assert [second.version, third.version] == [first.version] * 2


@guarantee(GUARANTEES, "A watch from a list in pages misses nothing that happened between its pages.")
async def a_watch_from_pages_misses_nothing(harness: Harness) -> None:
    for name in ("b", "c"):
        await harness.store.create(pasture(name))
    first = await harness.store.list(Pasture, limit=1)
    await harness.store.create(pasture("a"))
    last = await harness.store.list(Pasture, limit=5, after=first.next)
    async with watching(harness, Pasture, since=last.version) as watch:
        assert (await watch.change()).resource.name == "a"


@guarantee(GUARANTEES, "A list of less than one item is Invalid.")
async def a_limit_below_one_is_refused(harness: Harness) -> None:
    await harness.store.create(pasture("home"))
    for limit in (0, -1):
        assert (await refused(Invalid, harness.store.list(Pasture, limit=limit))).field == "limit"
        views = harness.store.list_views(Pasture, lambda found: found.name.encode(), limit=limit)
        assert (await refused(Invalid, views)).field == "limit"


@guarantee(GUARANTEES, "A continue token that is none of the store's is Invalid.")
async def a_nonsense_token_is_refused(harness: Harness) -> None:
    await harness.store.create(pasture("home"))
    for token in ("nonsense", "eyJ4IjoxfQ", "ünfug", "=", "a"):
        await refused(Invalid, harness.store.list(Pasture, limit=1, after=token))
