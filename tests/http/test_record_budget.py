"""Budget of records: an organization adds so many bytes in a day, and none at the cost of another one."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.audit import STREAM, subject_of_organization
from remuda.http.record_budget import BODY_FACTOR, REQUEST_BYTES, RecordBudget, RecordBudgetUsed
from tests.kit.clocks import HandClock
from tests.kit.sample_api.pipeline import HORSE, HORSES, ORGANIZATION, running

OURS, THEIRS = "a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002"
GOOD = {"metadata": {"name": "bella"}, "spec": {"age": 7}}
DAY_S = 86_400.0


def user(subject: str, *organizations: str, payer: str | None = None) -> Principal:
    return Principal(subject=subject, type="user", organizations=organizations, organization=payer)


def is_used(budget: RecordBudget, principal: Principal) -> bool:
    try:
        budget.take_request(principal)
    except RecordBudgetUsed:
        return True
    return False


def used_up(principal: Principal) -> RecordBudget:
    budget = RecordBudget(HandClock(), 2 * REQUEST_BYTES)
    for _ in range(2):
        budget.take_request(principal)
    return budget


@pytest.mark.parametrize(
    ("by", "for_whom", "is_over"),
    [
        (user("ann", OURS), user("ben", OURS), True),
        (user("ann", OURS), user("eve", THEIRS), False),
        (user("ann", OURS, THEIRS, payer=OURS), user("ben", OURS), True),
        (user("ann", OURS, THEIRS, payer=OURS), user("eve", THEIRS), False),
        (user("ann", OURS, THEIRS), user("eve", THEIRS), True),
        (user("eve", THEIRS, payer=OURS), user("ben", OURS), False),
        (user("eve", payer=OURS), user("ben", OURS), False),
        (user("eve"), user("eve"), True),
        (Principal(subject="unikorn-compute", type="system", organization=OURS), user("ben", OURS), False),
    ],
    ids=[
        "members share the budget",
        "other organizations have their own",
        "the payer counts",
        "and only the payer",
        "without a payer all of them count",
        "an outsider does not use the budget of an organization that it names",
        "neither does a caller without any organization",
        "who has a budget of its own",
        "a service is not counted",
    ],
)
def test_m27_records_count_for_the_organization_of_who_adds_them(
    by: Principal, for_whom: Principal, *, is_over: bool
) -> None:
    assert is_used(used_up(by), for_whom) == is_over


async def test_a_budget_comes_back_in_a_day() -> None:
    clock = HandClock()
    budget, ann = RecordBudget(clock, 2 * REQUEST_BYTES), user("ann", OURS)
    assert [is_used(budget, ann) for _ in range(3)] == [False, False, True]
    await clock.sleep(DAY_S / 2 + 1)
    assert [is_used(budget, ann) for _ in range(2)] == [False, True]


async def test_m27_over_the_budget_requests_add_no_record_and_remove_none(tmp_path: Path) -> None:
    clock = HandClock()
    async with running(tmp_path, records=RecordBudget(clock, 10 * REQUEST_BYTES)) as api:
        member = replace(api.tokens.known["good"], organizations=(ORGANIZATION,))
        api.tokens.known |= {"good": member, "other": replace(member, subject="ben@example.com")}
        outsider = replace(member, subject="eve@example.com", organizations=(THEIRS,))
        api.tokens.known["outsider"] = outsider
        subject = subject_of_organization(ORGANIZATION)
        statuses = [(await api.client.delete(f"{HORSES}/{HORSE}")).status for _ in range(12)]
        assert statuses == [202] * 10 + [429] * 2
        refused = await api.client.having("other").delete(f"{HORSES}/{HORSE}")
        assert (refused.status, refused.json["code"]) == (429, "too_many")
        assert "raise server.record_limit" in refused.json["error_description"]
        assert int(refused.headers["retry-after"]) > 0
        assert (await api.client.get(f"{HORSES}/{HORSE}")).status == 200, "a read adds nothing"
        assert (await api.client.having("outsider").delete(f"{HORSES}/{HORSE}")).status != 429
        records = await api.store.read(STREAM, subject, limit=100)
        assert len([each for each in records.entries if b"eve@" not in bytes(each.data)]) == 10


async def test_a_body_counts_as_often_as_records_may_contain_it(tmp_path: Path) -> None:
    limit = REQUEST_BYTES + 10 * BODY_FACTOR
    async with running(tmp_path, records=RecordBudget(HandClock(), limit)) as api:
        assert (await api.client.post(HORSES, GOOD)).status == 429
        assert (await api.client.delete(f"{HORSES}/{HORSE}")).status == 429, "its request was counted"
