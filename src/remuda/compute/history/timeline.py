"""What is said of an event in a timeline: one plain sentence.

An event that is not known here, such as one of a later release, is told by its own word and facts. Facts come from
outside this service, too, so nothing in them is taken for granted. People are known by their addresses; who is known by
an id alone, as service accounts are, is called an account.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from remuda.kernel.ids import is_id

Facts = Mapping[str, Any]

_WORD = re.compile(r"(?<!^)(?=[A-Z])")

_SAID: Mapping[str, str] = {
    "Held": "A controller has taken it into its care.",
    "LetGo": "It is gone: everything that it had was removed.",
    "Undone": "It is removed, because the operation that made it was taken back.",
    "DeletionRequested": "{actor} asked for its deletion.",
    "Started": "{actor} started it.",
    "Stopped": "{actor} stopped it.",
    "SnapshotMade": "{actor} had a snapshot made of it: the image {image}.",
    "KeyHandedOut": "{actor} was given the private SSH key that opens it.",
    "ConsoleOpened": "{actor} was given the address of its console, by which it can be used.",
    "NetworkDeleted": "Its network {network} is being deleted, and takes it along.",
    "ServerMade": "Its server is there.",
    "ServerChanged": "Its server is changed as it was asked for: {fields}.",
    "LeftoverRemoved": "A server that an earlier instance of its name left behind was removed.",
    "Rebuilding": "Its server is being rebuilt from the image {image}: what was on its disk is lost.",
    "Replacing": "Another server takes its server's place, with the same addresses: what is on its disk is lost.",
    "TakenBack": "Its server stays as it is: the one that was to take its place is not wanted any more.",
    "Rebuilt": "Its server was made anew.",
    "RebuildFailed": "Its server could not be made anew: {message}.",
    "AmbiguousServer": "It is not clear which server is its own, so nothing is done to any: {servers}.",
    "Finding": "The monitor found something odd: {message}.",
    "Repaired": "The monitor mended something: {message}.",
    "MassDestructionStopped": "Too much would go at once that nobody asked to go, so nothing more is removed.",
    "DestroyedUnasked": "Something of it was removed that nobody asked to remove.",
    "OperationStarted": "{actor} asked for {what}.",
    "OperationDone": "What {actor} asked for, {what}, is agreed to.",
    "OperationUndone": "What {actor} asked for, {what}, was taken back, and left nothing behind.",
    "OperationAbandoned": "An operator gave up what {actor} asked for, {what}: the rest is cleaned up by hand.",
}


def sentence_of(event: str, facts: Facts) -> str:
    """Return what happened, for people."""
    if event in EVENTS:
        return _sentence(event, {**facts, "actor": account(str(facts.get("actor") or ""))})
    words = _WORD.sub(" ", event).lower() or "something happened"
    known = [f"{name} {value}" for name, value in sorted(facts.items()) if isinstance(value, str | int)]
    return f"{words[0].upper()}{words[1:]}{': ' if known else ''}{', '.join(known)}."


def account(actor: str) -> str:
    """Return who somebody is, as far as that is known."""
    return f"account {actor}" if is_id(actor) else actor or "somebody"


def _sentence(event: str, facts: Facts) -> str:
    if event in _TOLD:
        return _TOLD[event](facts)
    listed = {name: _listed(value) for name, value in facts.items()}
    return _SAID[event].format_map(_Known(listed | {"what": _what(facts)}))


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class _Known(dict[str, Any]):
    """Facts, and a word for those that are not there."""

    def __missing__(self, _key: str) -> str:
        return "unknown"


def _condition(facts: Facts) -> str:
    kind, status = str(facts.get("type", "")), str(facts.get("status", ""))
    message = str(facts.get("message", ""))
    said = _CONDITIONS.get((kind, status)) or _CONDITIONS.get((kind, ""))
    if kind == "Available" and facts.get("reason") == "Deprovisioning":
        said = "It is being deleted: {message}."
    if (kind, status) == ("Healthy", "True"):
        said = _WELL.get(message, said)
    said = said or "{kind} is {status}: {message}."
    if not message:
        said = said.replace(": {message}", "")
    return said.format(kind=kind, status=status, message=message)


_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Available", "True"): "It is as it was asked to be.",
    ("Available", ""): "It is not as it was asked to be: {message}.",
    ("Stalled", "True"): "It has not moved for too long: {message}.",
    ("Stalled", ""): "It moves again.",
    ("Healthy", "True"): "It is healthy.",
    ("Healthy", "Unknown"): "How it is doing is not known: {message}.",
    ("Healthy", ""): "It is not healthy: {message}.",
    ("Drifted", "True"): "At its provider it is not what it was made any more, and is left so: {message}.",
    ("Drifted", ""): "At its provider it is again what it was made.",
    ("Rebuilding", "True"): "Its server is being made anew: {message}.",
    ("Rebuilding", ""): "Making its server anew is over: {message}.",
    ("Charged", "True"): "What it costs is held in its quota.",
    ("Charged", ""): "It costs less than before: {message}.",
}
"""By the type of a condition and what it says; without the latter, what is said of all others."""

_WELL = {"server is stopped": "It is off.", "server is healthy": "It runs, and is healthy."}
"""What is said of one with which all is well, by what region says of its server."""


_ASKED = {"instance.create": "an instance", "instance.update": "a change that costs more or less"}
"""What each operation is for."""


def _what(facts: Facts) -> str:
    """Return what an operation is for, with the name that logs have for it."""
    saga = str(facts.get("saga", "unknown"))
    return f"{_ASKED[saga]} ({saga})" if saga in _ASKED else saga


def _undoing(facts: Facts) -> str:
    return f"What {facts['actor']} asked for, {_what(facts)}, failed{_at(facts)} and is taken back{_why(facts)}."


def _stuck(facts: Facts) -> str:
    return f"What {facts['actor']} asked for, {_what(facts)}, cannot be taken back: an operator has to look."


def _at(facts: Facts) -> str:
    step = facts.get("failedStep")
    return f" at {step}" if step else ""


def _why(facts: Facts) -> str:
    error = facts.get("error")
    sentence = str(error.get("sentence", "")).rstrip(".") if isinstance(error, dict) else ""
    return f", because: {sentence}" if sentence else ""


def _rebooted(facts: Facts) -> str:
    return f"{facts['actor']} rebooted it{', the hard way' if facts.get('hard') else ''}."


def _changed(facts: Facts) -> str:
    changes = facts.get("changes")
    what = " ".join(map(str, changes)) if isinstance(changes, list) else ""
    return f"{facts['actor']} asked for a change{': ' if what else '.'}{what}"


def _made_again(facts: Facts) -> str:
    power = " It was off, and is started with that." if facts.get("was") == "Stopped" else ""
    why = facts.get("why", "nobody says why")
    return f"Its server is made again, because {why}. What was on its disk is lost.{power}"


def _moved(facts: Facts) -> str:
    changes = facts.get("changes")
    known = changes if isinstance(changes, dict) else {}
    said = [
        f"its {word} was {each.get('was', 'unknown')} and is {each.get('now', 'unknown')}"
        for name, word in _ADDRESSES.items()
        if isinstance(each := known.get(name), dict)
    ]
    return f"It has other addresses than before{': ' if said else ''}{', '.join(said)}."


_ADDRESSES = {"privateIP": "private IP", "macAddress": "MAC address", "publicIP": "public IP"}

_TOLD: Mapping[str, Callable[[Facts], str]] = {
    "AddressesChanged": _moved,
    "ConditionChanged": _condition,
    "OperationUndoing": _undoing,
    "OperationStuck": _stuck,
    "ChangeRequested": _changed,
    "MadeAgain": _made_again,
    "Rebooted": _rebooted,
}

EVENTS = frozenset({*_SAID, *_TOLD})
"""All that have a sentence of their own."""
