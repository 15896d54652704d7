"""A running server answers no rpc UNIMPLEMENTED."""

from __future__ import annotations

import asyncio

from contextengine_server.api.pipeline import contract
from contextengine_server.api.pipeline.contract import Rpc
from tests.integration.harness import House

LONGEST_S = 2.0
"""Streams that last as long as their client likes are left then."""


async def test_every_call_is_served(house: House) -> None:
    async def answered(rpc: Rpc) -> tuple[str, str]:
        # An empty request is wrong for many; what is asked is whether somebody judges it.
        answer = await house.raw(rpc, b"", timeout=LONGEST_S if rpc.long_lived else 20)
        return rpc.method.removeprefix("contextengine.v1."), answer.code

    codes = dict(await asyncio.gather(*(answered(rpc) for rpc in contract.rpcs())))
    assert len(codes) == len(contract.rpcs()) > 30
    refused = ("UNIMPLEMENTED", "UNKNOWN", "INTERNAL", "UNAVAILABLE")
    assert not {method for method, code in codes.items() if code in refused}
