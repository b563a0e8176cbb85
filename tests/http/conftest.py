"""Fixtures of the HTTP server."""

from tests.kit.environment import provided_by
from tests.kit.sample_api.idempotency import run_idempotency

idempotency = provided_by(run_idempotency)
