"""Protocols and methods of the provider contract."""

from typing import Any, get_args, get_type_hints

from remuda.providers.contract.provider import Provider


def methods_of(capability: str) -> set[str]:
    return {verb for verb in vars(protocol_of(capability)) if not verb.startswith("_")}


def protocol_of(capability: str) -> Any:
    annotation = get_type_hints(Provider)[capability]
    return next((each for each in get_args(annotation) if each is not type(None)), annotation)


def is_protocol(annotation: Any) -> bool:
    return bool(getattr(annotation, "_is_protocol", False))
