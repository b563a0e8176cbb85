"""What is said of an event in a timeline: one plain sentence.

An event that is not known here, such as one of a later release, is told by its own word and facts. Facts come from
outside this service, too, so nothing in them is taken for granted.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["EVENTS", "sentence_of"]

Facts = Mapping[str, Any]

_WORD = re.compile(r"(?<!^)(?=[A-Z])")

_SAID: Mapping[str, str] = {
    "Held": "A controller has taken it into its care.",
    "LetGo": "It is gone: everything that it had was removed.",
    "Undone": "It is removed, because the operation that made it was taken back.",
    "DeletionRequested": "{actor} asked for its deletion.",
    "ChangeRequested": "{actor} asked for a change.",
    "Started": "{actor} started it.",
    "Stopped": "{actor} stopped it.",
    "SnapshotMade": "{actor} had a snapshot made of it: the image {image}.",
    "NetworkDeleted": "Its network {network} is being deleted, and takes it along.",
    "ServerMade": "Its server is there.",
    "ServerChanged": "Its server is changed as it was asked for: {fields}.",
    "MadeAgain": "Its server is made again, because {why}.",
    "LeftoverRemoved": "A server that an earlier instance of its name left behind was removed.",
    "Rebuilding": "Its server is being rebuilt from the image {image}: what was on its disk is lost.",
    "Replacing": "Another server is put in its server's place, with the same addresses: what was on the disk is lost.",
    "Rebuilt": "Its server was made anew.",
    "RebuildFailed": "Its server could not be made anew: {message}.",
    "AmbiguousServer": "It is not clear which server is its own, so nothing is done to any: {servers}.",
    "Finding": "The monitor found something odd: {message}.",
    "Repaired": "The monitor mended something: {message}.",
    "MassDestructionStopped": "Too much would go at once that nobody asked to go, so nothing more is removed.",
    "DestroyedUnasked": "Something of it was removed that nobody asked to remove.",
    "OperationStarted": "{actor} began an operation: {saga}.",
    "OperationDone": "The operation {saga} of {actor} is done.",
    "OperationUndone": "The operation {saga} of {actor} was taken back, and left nothing behind.",
    "OperationAbandoned": "An operator gave up the operation {saga} of {actor}: what it left is cleaned up by hand.",
}


def sentence_of(event: str, facts: Facts) -> str:
    """Return what happened, for people."""
    if event in _TOLD:
        return _TOLD[event](facts)
    if event in _SAID:
        return _SAID[event].format_map(_Known({name: _listed(value) for name, value in facts.items()}))
    words = _WORD.sub(" ", event).lower() or "something happened"
    known = [f"{name} {value}" for name, value in sorted(facts.items()) if isinstance(value, str | int)]
    return f"{words[0].upper()}{words[1:]}{': ' if known else ''}{', '.join(known)}."


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class _Known(dict[str, Any]):
    """Facts, and a word for those that are not there."""

    def __missing__(self, key: str) -> str:
        return "somebody" if key == "actor" else "unknown"


def _condition(facts: Facts) -> str:
    kind, status = str(facts.get("type", "")), str(facts.get("status", ""))
    message = str(facts.get("message", ""))
    said = _CONDITIONS.get((kind, status)) or _CONDITIONS.get((kind, ""))
    if kind == "Available" and facts.get("reason") == "Deprovisioning":
        said = "It is being deleted: {message}."
    return (said or "{kind} is {status}: {message}.").format(kind=kind, status=status, message=message)


_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Available", "True"): "It is as it was asked to be.",
    ("Available", ""): "It is not as it was asked to be: {message}.",
    ("Stalled", "True"): "It has not moved for too long: {message}.",
    ("Stalled", ""): "It moves again.",
    ("Healthy", "True"): "It is healthy.",
    ("Healthy", "Unknown"): "How it is doing is not known: {message}.",
    ("Healthy", ""): "It is not healthy: {message}.",
    ("Rebuilding", "True"): "Its server is being made anew: {message}.",
    ("Rebuilding", ""): "Its server is no longer being made anew: {message}.",
    ("Charged", "True"): "What it costs is held in its quota.",
    ("Charged", ""): "What it costs is not held: {message}.",
}
"""By the type of a condition and what it says; without the latter, what is said of all others."""


def _undoing(facts: Facts) -> str:
    known = _Known(facts)
    return f"The operation {known['saga']} of {known['actor']} failed{_at(facts)} and is taken back{_why(facts)}."


def _stuck(facts: Facts) -> str:
    known = _Known(facts)
    return f"The operation {known['saga']} of {known['actor']} cannot be taken back: an operator has to look."


def _at(facts: Facts) -> str:
    step = facts.get("failedStep")
    return f" at {step}" if step else ""


def _why(facts: Facts) -> str:
    error = facts.get("error")
    sentence = str(error.get("sentence", "")).rstrip(".") if isinstance(error, dict) else ""
    return f", because: {sentence}" if sentence else ""


def _rebooted(facts: Facts) -> str:
    return f"{_Known(facts)['actor']} rebooted it{', the hard way' if facts.get('hard') else ''}."


_TOLD: Mapping[str, Callable[[Facts], str]] = {
    "ConditionChanged": _condition,
    "OperationUndoing": _undoing,
    "OperationStuck": _stuck,
    "Rebooted": _rebooted,
}

EVENTS = frozenset({*_SAID, *_TOLD})
"""All that have a sentence of their own."""
