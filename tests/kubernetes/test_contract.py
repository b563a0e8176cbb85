"""The contract on a real API server: the same laws, unchanged."""

import pytest

from tests.kit.proofs.store_contract.guarantee import Law
from tests.kit.proofs.store_contract.guarantees.table import LAWS
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import api_server

pytestmark = pytest.mark.kubernetes


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
async def test_law(law: Law, cluster: Cluster) -> None:
    async with api_server(cluster) as harness:
        await law.prove(harness)
