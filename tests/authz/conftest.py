"""Fixtures of authorization: region and compute, with every caller and a thing in every place."""

from tests.kit.environment import provided_by
from tests.kit.proofs.authorization.compute_subject import in_compute
from tests.kit.proofs.authorization.region_subject import in_region

compute_subject = provided_by(in_compute)
region_subject = provided_by(in_region)
