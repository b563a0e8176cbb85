"""The contract on a real API server: the same laws, unchanged."""

import pytest

from tests.kit.proofs.store_contract.guarantee import Guarantee
from tests.kit.proofs.store_contract.guarantees.table import GUARANTEES
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import api_server

pytestmark = pytest.mark.kubernetes


@pytest.mark.parametrize("law", GUARANTEES, ids=lambda law: law.name)
async def test_law(law: Guarantee, cluster: Cluster) -> None:
    async with api_server(cluster) as harness:
        await law.prove(harness)
