"""Values that the proofs of the instance sagas share."""

from remuda.access.principal import Principal
from remuda.quota.ports import ProjectRef

ORG, PROJECT = "a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-00000000000a"


HOME = ProjectRef(ORG, PROJECT)
PAYER = ProjectRef("b0000000-0000-4000-8000-000000000002", "b0000000-0000-4000-8000-00000000000b")
ANN = Principal(subject="ann@example.com", type="user").with_payer(PAYER.organization, PAYER.project)
NETWORK = "e0000000-0000-4000-8000-000000000001"
REGION = "c0000000-0000-4000-8000-000000000001"
FLAVOR = "11111111-1111-1111-1111-111111111111"
IMAGE = "33333333-3333-3333-3333-333333333333"
LIMITS = {"servers": 2, "gpus": 10, "floatingips": 2}
