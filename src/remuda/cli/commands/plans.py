"""A plan in plain words: what is done, what is lost, what survives, for how long it is down, and what it costs."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NARROWEST = 40
_THINGS = {
    "id": "id",
    "name": "name",
    "privateIP": "private address",
    "macAddress": "MAC address",
    "publicIP": "public address",
    "rootDisk": "root disk",
    "sshHostKeys": "SSH host keys",
    "memory": "what runs on it",
}


def plan_text(plan: Mapping[str, Any], room: int | None = None) -> str:
    """Return a plan as text, in lines of at most so many letters if that is said."""
    if not plan["steps"]:
        return "Nothing would change.\n"
    parts = [*_parts(plan)]
    width = max(len(heading) for heading, _ in parts)
    shown = []
    for heading, lines in parts:
        wrapped = [piece for line in lines for piece in _wrapped(line, None if room is None else room - width - 2)]
        shown += [
            f"{first:<{width}}  {line}\n" for first, line in zip([heading, *[""] * len(wrapped)], wrapped, strict=False)
        ]
    return "".join(shown)


def _wrapped(line: str, room: int | None) -> list[str]:
    return [line] if room is None else textwrap.wrap(line, max(room, _NARROWEST))


def _parts(plan: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    yield "Plan", [plan["sentence"]]
    for step in plan["steps"]:
        yield step["kind"].capitalize(), [*(change["sentence"] for change in step["changes"]), step["sentence"]]
    yield "Lost", [each["sentence"] for each in plan["lost"]] or ["Nothing."]
    yield "Survives", [", ".join(_thing(each) for each in plan["survives"]) or "Nothing."]
    yield "Downtime", [plan["downtime"]["sentence"]]
    yield "Quota", [_quota(plan["quota"])]
    if plan.get("blockers"):
        yield "Blocked", [each["sentence"] for each in plan["blockers"]]
    yield "Hash", [plan["hash"]]


def _thing(thing: Mapping[str, Any]) -> str:
    word = _THINGS.get(thing["thing"], thing["thing"])
    return f"{word} {thing['value']}" if thing.get("value") else word


def _quota(changes: Sequence[Mapping[str, Any]]) -> str:
    told = [
        f"{each['kind']} {each['before']} -> {each['after']} ({each['delta']:+})" for each in changes if each["delta"]
    ]
    if told:
        return ", ".join(told)
    costs = ", ".join(f"{each['kind']} {each['after']}" for each in changes if each["after"])
    return f"As before ({costs})." if costs else "It costs nothing."
