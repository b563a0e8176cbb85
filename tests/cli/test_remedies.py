"""Errors of the API in terms of the CLI: the messages that have remedies, the code that says them, and the options."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from remuda.cli import crud
from remuda.cli.client.transport import COMMANDS, REMEDIES, explained, option_of
from remuda.cli.resources import INSTANCE, NETWORK, SECURITY_GROUP, SSH_CA, ResourceType, schema_type
from remuda.kernel.errors import Forbidden

SOURCE = Path(__file__).parents[2] / "src" / "remuda"
RBAC = ("access/checks.py", ["operation is not allowed by rbac: operation '{permission.verb}' on endpoint "])
QUOTA = "identity/quotas/quota_state.py", "would exceed {what} limit of {limit}"
IN_USE = "resources/service.py", "{self.noun} is in use and cannot be deleted"

ORIGINS: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    "operation 'update' on endpoint 'identity:quotas'": [
        RBAC,
        ("identity/quotas/routes.py", ['permission("quotas", "update")']),
    ],
    "no global-scope permissions": [
        ("access/checks.py", ["no global-scope permissions are granted to this principal"])
    ],
    "operation is not allowed by rbac": [RBAC],
    "project quota limit of": [(QUOTA[0], [QUOTA[1], 'what="project quota"'])],
    "quota limit of": [(QUOTA[0], [QUOTA[1], 'what="quota"'])],
    "is not compatible with flavor architecture": [
        ("compute/instances/service.py", ["is not compatible with flavor architecture {"])
    ],
    "is too small for an image of": [("compute/instances/service.py", ["GiB is too small for an image of {"])],
    "security group is in use": [
        (IN_USE[0], [IN_USE[1]]),
        ("region/securitygroups/service.py", ['"security group"']),
    ],
    "SSH certificate authority is in use": [
        (IN_USE[0], [IN_USE[1]]),
        ("region/authorities/service.py", ['"SSH certificate authority"']),
    ],
    "is in use and": [(IN_USE[0], [IN_USE[1]])],
    "in its current state": [("region/servers/actions.py", ["server cannot be started in its current state"])],
    "set spec.protection.deletion to false, then delete it": [
        ("compute/policies.py", ["set spec.protection.deletion to false, then delete it."])
    ],
    crud.IN_USE: [(IN_USE[0], [IN_USE[1]])],
}
"""Source files of each message, with the literals that it consists of."""


def test_every_message_has_its_origin() -> None:
    assert ORIGINS.keys() == REMEDIES.keys() | COMMANDS.keys() | {crud.IN_USE}


@pytest.mark.parametrize("message", ORIGINS)
def test_the_api_says_the_message(message: str) -> None:
    for path, literals in ORIGINS[message]:
        source = (SOURCE / path).read_text()
        assert [each for each in literals if each not in source] == [], path


@pytest.mark.parametrize("message", REMEDIES)
def test_the_message_has_its_remedy(message: str) -> None:
    assert explained(Forbidden(f"it {message} x"), None).message == f"It {message} x: {REMEDIES[message]}."


WITHOUT_OPTION = {
    *("/spec/networking/publicIP", "/spec/protection/deletion", "/spec/protection/plan"),
    *("/spec/routes/prefix", "/spec/routes/nexthop"),
    *("/spec/reservations/prefixLength", "/spec/reservations/providerReservedPrefixLength"),
}
"""Values that the CLI makes itself or never sends, so they are never wrong."""


def leaves(struct: Any, pointer: str) -> Iterator[str]:
    """Yield the JSON pointers of the values of a struct, and of the structs that are not written value by value."""
    hints = get_type_hints(struct)
    for name, encoded in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        nested = [each for each in (hints[name], *get_args(hints[name])) if isinstance(each, type(msgspec.Struct))]
        if nested:
            yield from leaves(nested[0], f"{pointer}/{encoded}")
        else:
            yield f"{pointer}/{encoded}"


def parameters() -> set[str]:
    """Return the names of all parameters of commands, and the fields of all groups of options."""
    trees = [
        ast.parse(path.read_text()) for path in [*(SOURCE / "cli").glob("commands/*.py"), SOURCE / "cli/options.py"]
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    found = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return found | {
        node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


@pytest.mark.parametrize("resource_type", [NETWORK, SECURITY_GROUP, SSH_CA, INSTANCE], ids=lambda each: each.name)
def test_every_value_of_a_request_has_its_option(resource_type: ResourceType[Any]) -> None:
    spec = get_type_hints(schema_type(resource_type.create))["spec"]
    options = {pointer: option_of(pointer) for pointer in leaves(spec, "/spec")}
    without = {pointer for pointer, option in options.items() if not option}
    assert {each for each in without if not each.endswith("Id")} <= WITHOUT_OPTION
    named = {option.removeprefix("--").replace("-", "_") for option in options.values() if option}
    assert named <= parameters(), "an option in a message exists"
