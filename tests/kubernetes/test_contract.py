"""The contract on a real API server: the same guarantees, unchanged."""

import pytest

from tests.kit.proofs.store_contract.guarantee import Guarantee
from tests.kit.proofs.store_contract.guarantees.table import GUARANTEES
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import api_server

pytestmark = pytest.mark.kubernetes


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.name)
async def test_guarantee(guarantee: Guarantee, cluster: Cluster) -> None:
    async with api_server(cluster) as harness:
        await guarantee.prove(harness)
