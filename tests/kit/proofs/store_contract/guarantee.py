"""Guarantees: one function each, with the sentence of the contract that it proves."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.kit.proofs.store_contract.harness import Harness

Proof = Callable[[Harness], Awaitable[None]]


@dataclass(frozen=True)
class Guarantee:
    """A sentence of the contract and its proof."""

    sentence: str
    prove: Proof

    @property
    def name(self) -> str:
        return self.prove.__name__


def guarantee(guarantees: list[Guarantee], sentence: str) -> Callable[[Proof], Guarantee]:
    """Make a guarantee of a function and enter it into `guarantees`."""

    def enter(prove: Proof) -> Guarantee:
        guarantees.append(Guarantee(sentence, prove))
        return guarantees[-1]

    return enter
