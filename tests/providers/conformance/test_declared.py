"""A provider has what it says that it has, and all of it."""

from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest

from remuda.providers.contract.provider import Provider
from tests.kit.providers.candidates import CANDIDATES, EVERYTHING, Candidate
from tests.kit.providers.conformance import Bench
from tests.kit.providers.protocols import is_protocol, methods_of, protocol_of


def on(candidate: Candidate, directory: Path, check: Callable[[Provider], None]) -> None:
    async def scenario(bench: Bench) -> None:
        check(bench.provider)

    candidate.run(scenario, directory)


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda each: each.name)
def test_m22_what_a_candidate_declares_is_what_its_provider_has(candidate: Candidate, tmp_path: Path) -> None:
    def check(provider: Provider) -> None:
        assert set(provider.capabilities) == candidate.capabilities

    on(candidate, tmp_path, check)


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda each: each.name)
def test_m22_every_capability_has_all_verbs_of_its_protocol(candidate: Candidate, tmp_path: Path) -> None:
    def check(provider: Provider) -> None:
        for capability in provider.capabilities:
            for verb in methods_of(capability):
                assert callable(getattr(getattr(provider, capability), verb, None)), f"{capability}.{verb}"

    on(candidate, tmp_path, check)


def test_the_suite_knows_every_capability_of_the_contract() -> None:
    assert {name for name in get_type_hints(Provider) if is_protocol(protocol_of(name))} == EVERYTHING
    assert methods_of("ports") == {"converge_port", "find_port", "remove_port", "ports"}
