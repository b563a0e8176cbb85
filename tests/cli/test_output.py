"""What commands show, word by word: tables, facts, plans, rules of groups, names, and how far something is."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remuda.cli import progress
from remuda.cli.commands.instance import plan_text
from remuda.cli.commands.security_group import parse_rule
from remuda.cli.crud import confirm
from remuda.cli.lookup import is_id, match_one
from remuda.cli.options import MetadataOptions
from remuda.cli.output import as_facts, as_table, dump, terminal_width
from remuda.cli.progress import OutOfTime, StatusUnknown
from remuda.cli.resources import rule_text
from remuda.compute.plans.schema import PlanRead
from remuda.kernel.errors import Invalid, NotFound, RemudaError, TooMany, Unavailable, Unusable
from remuda.region.authorities.schema import AuthorityRead
from remuda.region.securitygroups.schema import RuleWire
from remuda.resources.schema import MetadataRead, MetadataWrite, TagWire
from tests.kit.scripted_server import metadata_json

PLANS = Path(__file__).parents[1] / "golden" / "plans"


def thing(name: str, key: str = "", status: Any = "provisioned", message: str = "") -> AuthorityRead:
    """Return a resource with this status: any type will do."""
    detail = {"provisioningStatusDetail": {"reason": "R", "message": message}} if message else {}
    metadata = metadata_json(name, status, id=key or f"id-of-{name}", **detail)
    return msgspec.convert({"metadata": metadata, "spec": {"publicKey": "k"}}, AuthorityRead)


def read_plan(path: Path) -> PlanRead:
    return msgspec.json.decode(path.read_bytes(), type=PlanRead)


def test_a_table_is_aligned_and_has_no_spaces_at_the_end() -> None:
    assert as_table(["NAME", "WHAT"], [["a", ""], ["longer", "b"]]) == "NAME    WHAT\na\nlonger  b\n"


def test_what_others_wrote_moves_no_cursor() -> None:
    assert "\x1b" not in as_table(["A"], [["x\x1b[2J\ny"]])
    assert as_table(["A"], [["x\ny"]]).count("\n") == 2


def test_facts_that_there_are_not_are_left_out() -> None:
    assert as_facts({"NAME": "a", "PRIVATE IP": "10.0.0.1", "DNS": ""}) == "Name        a\nPrivate IP  10.0.0.1\n"


def test_a_thing_is_found_by_its_name_or_its_id() -> None:
    things = [thing("a"), thing("b"), thing("twin", "1"), thing("twin", "2")]
    assert match_one(things, "b", "horse").metadata.id == "id-of-b"
    assert match_one(things, "2", "horse").metadata.name == "twin"
    with pytest.raises(Unusable, match=r"^The horse c does not exist: choose from a, b, twin\.$"):
        match_one(things, "c", "horse")
    with pytest.raises(Unusable, match=r"^The name twin matches 2 horses: give the id, one of 1, 2\.$"):
        match_one(things, "twin", "horse")
    with pytest.raises(Unusable, match="h0, h1, h2, h3, h4, h5, h6, h7 and 3 more"):
        match_one([thing(f"h{number}") for number in range(9)] + [thing("h9"), thing("i")], "c", "horse")


def test_an_id_is_told_from_a_name() -> None:
    assert is_id("11111111-1111-4111-8111-111111111111")
    assert not is_id("a-name-that-is-as-long-as-an-id-is-12")


rules = st.builds(
    lambda direction, what, prefix: {"direction": direction, **what, **prefix},
    st.sampled_from(["ingress", "egress"]),
    st.one_of(
        st.builds(lambda protocol: {"protocol": protocol}, st.sampled_from(["any", "icmp", "tcp", "udp", "vrrp"])),
        st.builds(
            lambda protocol, ports: {"protocol": protocol, **ports},
            st.sampled_from(["tcp", "udp"]),
            st.sets(st.integers(1, 65535), min_size=1, max_size=2).map(
                lambda ports: dict(zip(("port", "portMax"), sorted(ports), strict=False))
            ),
        ),
    ),
    st.sampled_from([{}, {"prefix": "10.0.0.0/8"}, {"prefix": "0.0.0.0/0"}]),
)


@given(rules)
def test_a_rule_is_written_as_it_is_read(rule: dict[str, Any]) -> None:
    read = msgspec.convert(rule, RuleWire)
    assert parse_rule(rule_text(read)) == read


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not begin with ingress or egress"),
        ("inward tcp", "does not begin with ingress or egress"),
        ("ingress", "has none of the protocols any, icmp, tcp, udp, vrrp"),
        ("ingress http 80", "has none of the protocols any, icmp, tcp, udp, vrrp"),
        ("ingress tcp ssh", "ends with ssh, which is neither ports nor a prefix"),
        ("ingress tcp 22 10.0.0.0/8 23", "ends with 23, which is neither ports nor a prefix"),
        ("ingress tcp 22 23", "ends with 23, which is neither ports nor a prefix"),
        ("ingress tcp 90-80", "has the ports 90-80, of which the first is not the lower one"),
        ("ingress tcp 80-80", "has the ports 80-80, of which the first is not the lower one"),
        ("ingress udp 0", "has a port that is not from 1 to 65535"),
        ("ingress udp 1-65536", "has a port that is not from 1 to 65535"),
        ("ingress icmp 22", "has ports, which only tcp and udp have"),
        ("ingress tcp 22 10.0.0.0/40", "has 10.0.0.0/40, which is not an IPv4 prefix"),
        ("ingress tcp 22 10.0.0.0", "has 10.0.0.0, which is not an IPv4 prefix"),
        ("egress any ::/0", "has ::/0, which is not an IPv4 prefix, IPv6 is not supported"),
    ],
)
def test_what_is_no_rule_is_told_why(text: str, problem: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_rule(text)
    assert refused.value.message == f'--allow {text!r} {problem}: write it as "ingress tcp 22 0.0.0.0/0".'


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.json")), ids=lambda path: path.stem)
def test_every_plan_says_all_that_it_holds(path: Path) -> None:
    plan = json.loads(path.read_text())
    shown = plan_text(read_plan(path))
    if not plan["steps"]:
        assert shown == "Nothing would change.\n"
        return
    sentences = [plan["message"], plan["downtime"]["message"], plan["hash"]]
    sentences += [each["message"] for each in plan["destroyed"]]
    sentences += [each["message"] for step in plan["steps"] for each in (step, *step["changes"])]
    sentences += [each["value"] for each in plan["preserved"] if each.get("value")]
    sentences += [f"{each['kind']} {each['before']} -> {each['after']}" for each in plan["quota"] if each["delta"]]
    assert [each for each in sentences if each not in shown] == []
    assert ("Lost      Nothing.\n" in shown) == (not plan["destroyed"])


def test_a_plan_fits_into_a_narrow_terminal() -> None:
    plan = read_plan(PLANS / "flavor-with-gpus.json")
    narrow = plan_text(plan, 60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert " ".join(narrow.split()) == " ".join(plan_text(plan).split())


def test_how_far_something_is() -> None:
    assert progress.status_of(thing("web", status="pending")) == "web is pending"
    waiting = thing("web", status="provisioning", message="its server boots")
    assert progress.status_of(waiting) == "web is provisioning: its server boots"
    assert progress.status_of(thing("web", status="error", message="error")) == "web is error"


def waited(*states: str, limit_s: float = 60.0) -> Any:
    left = [*states]

    async def read() -> AuthorityRead:
        return thing("web", status=left.pop(0) if len(left) > 1 else left[0])

    return asyncio.run(
        progress.wait_until(
            read,
            lambda now: now.metadata.provisioning_status == "provisioned",
            lambda now: now.metadata.provisioning_status == "error",
            limit_s=limit_s,
            command="remuda horse show web",
            remedy="look at it",
        )
    )


async def no_sleep(_seconds: float) -> None:
    """Wait for nothing."""


def test_who_waits_sees_each_step_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "sleep", no_sleep)
    assert waited("pending", "pending", "provisioning", "provisioned").metadata.name == "web"
    assert capsys.readouterr().err == "web is pending\nweb is provisioning\n"


def test_waiting_ends_where_it_has_failed_or_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "sleep", no_sleep)
    with pytest.raises(Unusable, match=r"^web is error: look at it\.$"):
        waited("pending", "error")
    with pytest.raises(OutOfTime) as late:
        waited("pending", limit_s=0.0)
    assert late.value.exit_code == 124
    assert late.value.message == (
        "The operation is not complete after 0s and continues (web is pending): remuda horse show web shows its "
        "status, or wait longer with --timeout."
    )


def test_waiting_for_the_end_of_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "sleep", no_sleep)
    looks = [thing("web", status="deprovisioning")]

    async def read() -> AuthorityRead:
        if not looks:
            raise NotFound("instance", "web")
        return looks.pop()

    deleted = progress.wait_until_deleted(read, lambda _: False, limit_s=60.0, command="remuda horse show web")
    asyncio.run(deleted)
    assert looks == []


def looked(*answers: Any, limit_s: float = 60.0) -> Any:
    """Wait for what is there in the end, where looking gives or raises this; the last again and again."""
    left = [*answers]

    async def read() -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return asyncio.run(
        progress.wait_until(
            read,
            lambda now: now.metadata.provisioning_status == "provisioned",
            lambda _: False,
            limit_s=limit_s,
            command="remuda horse show web",
        )
    )


AWAY = Unavailable("http://here does not answer (Connection refused): is it running, and is that its address?")


@pytest.mark.parametrize("trouble", [AWAY, TooMany(1)])
def test_a_server_that_starts_again_meanwhile_is_waited_for(
    trouble: RemudaError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "sleep", no_sleep)
    assert looked(thing("web", status="pending"), trouble, trouble, thing("web")).metadata.name == "web"
    assert capsys.readouterr().err == f"web is pending\n{trouble.message}\n"


def test_where_nobody_answers_until_the_end_it_is_told_that_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "sleep", no_sleep)
    with pytest.raises(StatusUnknown) as late:
        looked(AWAY, limit_s=0.0)
    assert late.value.exit_code == 124
    assert late.value.message == (
        "The operation was requested and continues: remuda horse show web shows its status. "
        "http://here does not answer (Connection refused): is it running, and is that its address?"
    )


def test_who_stops_waiting_is_told_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        looked(KeyboardInterrupt())
    assert capsys.readouterr().err == (
        "The operation was requested and continues: remuda horse show web shows its status.\n"
    )


def test_only_a_yes_is_one() -> None:
    for answer in ("y", " YES "):
        confirm("It ends.", yes=False, ask=lambda _, answer=answer: answer)  # type: ignore[misc]  # bound at once
    for answer in ("", "no", "yep"):
        with pytest.raises(Unusable, match=r"^Nothing was done\.$"):
            confirm("It ends.", yes=False, ask=lambda _, answer=answer: answer)  # type: ignore[misc]  # same


def test_nobody_can_agree_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for stdin in (io.StringIO("y\n"), None):
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(Unusable, match="Confirmation needs a terminal: add --yes to confirm"):
            confirm("It ends.", yes=False)
        confirm("It ends.", yes=True)


def test_where_nothing_is_open_nobody_sits_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert terminal_width() is None
    assert looked(thing("web", status="pending"), thing("web")).metadata.name == "web"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_programs_read_means_the_same_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    value = {"é": "a ☃ \\ and \U0001f40e"}
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        text = dump(value, output)  # type: ignore[arg-type]  # both are formats
        assert read(text) == value
        assert text.isascii() == (encoding != "utf-8")


def test_what_is_not_said_about_something_stays() -> None:
    tags = (TagWire(name="x", value="y"),)
    before = msgspec.convert(metadata_json("a", description="old", tags=[{"name": "x", "value": "y"}]), MetadataRead)
    assert MetadataOptions().metadata("a", before) == MetadataWrite(name="a", description="old", tags=tags)
    after = MetadataWrite(name="a", description="", tags=(TagWire(name="k", value="v=w"),))
    assert MetadataOptions(description="", tag=("k=v=w",)).metadata("a", before) == after
