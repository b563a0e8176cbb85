"""Laws: one function each, with the sentence of the contract that it proves."""

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


def guarantee(laws: list[Guarantee], sentence: str) -> Callable[[Proof], Guarantee]:
    """Make a law of a function and enter it into `laws`."""

    def enter(prove: Proof) -> Guarantee:
        laws.append(Guarantee(sentence, prove))
        return laws[-1]

    return enter
