"""The recorder of effects finds what it is there to find."""

from pathlib import Path

import pytest

from remuda.access.principal import Context
from tests.example.customers import MOUNTS
from tests.example.running import running
from tests.example.service import Livery
from tests.kit.proofs.effects import LoosePairError


async def test_a_request_with_two_effects_outside_an_operation_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def brand_twice(livery: Livery, context: Context, mount: str) -> str:
        await brand_once(livery, context, mount)
        return await brand_once(livery, context, mount)

    brand_once = Livery.brand_mount
    async with running(tmp_path) as livery:
        mount = await livery.make_mount(await livery.make_yard())
        monkeypatch.setattr(Livery, "brand_mount", brand_twice)
        with pytest.raises(LoosePairError, match="update"):
            await livery.client("user").post(f"{MOUNTS}/{mount}/brand")
