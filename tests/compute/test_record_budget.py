"""Size that is counted for the records of a request, against what requests really add."""

import base64

import msgspec
import pytest

from remuda.access.principal import Principal
from remuda.http.record_budget import BODY_FACTOR, REQUEST_BYTES, RecordBudget
from remuda.operations.kinds import Operation
from tests.kit.clocks import HandClock
from tests.kit.compute.environment import ComputeEnvironment, run_compute
from tests.kit.compute.requests import at, settle
from tests.kit.identity.environment import expect

STREAMS = ("timeline", "audit")
WRITES = 6


class Meter(RecordBudget):
    """A budget that sums up what is counted."""

    counted = 0

    def take_request(self, principal: Principal) -> None:
        super().take_request(principal)
        self.counted += REQUEST_BYTES

    def take_body(self, principal: Principal, size: int) -> None:
        super().take_body(principal, size)
        self.counted += BODY_FACTOR * size


async def _stored(compute: ComputeEnvironment) -> int:
    """Return the size of all timeline, audit and operation records."""
    total = 0
    for stream in STREAMS:
        after, is_last = 0, False
        while not is_last:
            page = await compute.store.read_stream(stream, after=after)
            after, is_last = page.reached, page.is_last
            total += sum(len(entry.subject) + len(entry.data) for entry in page.entries)
    operations = (await compute.store.list(Operation)).items
    return total + sum(len(msgspec.json.encode(each, enc_hook=lambda secret: secret.reveal())) for each in operations)


@pytest.mark.parametrize("lines", [0, 2_000])
def test_m27_requests_add_fewer_bytes_of_records_than_are_counted(lines: int) -> None:
    meter = Meter(HandClock())

    async def scenario(compute: ComputeEnvironment) -> None:
        tenant = await settle(compute)
        data = base64.b64encode(b"#!/bin/sh\n" + b"# nothing\n" * lines).decode()
        before = await _stored(compute)
        created = await tenant.client.post("/api/v2/instances", tenant.wanted(compute, userData=data))
        instance = expect(created, 201)["metadata"]["id"]
        await compute.until(instance, "provisioned")
        for number in range(WRITES):
            body = tenant.wanted(compute, userData=data)
            body["metadata"]["description"] = f"change {number}"
            reply = await tenant.client.put(at(instance), body)
            assert reply.status in {200, 202}, reply.body
            await compute.until(instance, "provisioned")
        for action in ("stop", "start"):
            await tenant.client.post(at(instance, action))
        assert (await tenant.client.get(at(instance, "sshkey"))).status == 200
        assert (await tenant.client.delete(at(instance))).status == 202
        await compute.until_gone(instance)
        added = await _stored(compute) - before
        assert 0 < added < meter.counted

    run_compute(scenario, is_instant=True, record_budget=meter)
