"""Remedies of the CLI that depend on a message of the API: each message, and the code that says it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from remuda.cli import crud
from remuda.cli.client.transport import COMMANDS, REMEDIES, explained
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
    "operation is not allowed by rbac": [RBAC],
    "project quota limit of": [(QUOTA[0], [QUOTA[1], 'what="project quota"'])],
    "quota limit of": [(QUOTA[0], [QUOTA[1], 'what="quota"'])],
    "is not compatible with flavor architecture": [
        ("compute/instances/service.py", ["is not compatible with flavor architecture {"])
    ],
    "is too small for an image of": [("compute/instances/service.py", ["GB is too small for an image of {"])],
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
