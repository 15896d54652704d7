"""A running server answers no rpc UNIMPLEMENTED; fields that belong to engines that are to come are
refused by name."""

from __future__ import annotations

import asyncio

from contextengine import types as t
from contextengine_server.api.pipeline import contract
from contextengine_server.api.pipeline.contract import Rpc
from tests.integration.harness import House, budget, ref

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


async def test_the_fields_to_come_are_refused_by_name(house: House) -> None:
    await house.stub.Ingest(
        t.IngestRequest(session=ref("s"), message=t.Message(role=t.Role.ROLE_USER,
        parts=[t.Part(text=t.TextPart(text="x"))]))
    )  # fmt: skip
    asked = {
        "memory_sections": (
            "ContextEngine/Assemble",
            t.AssembleRequest(
                session=ref("s"), budget=budget(1000), memory_sections=[t.MemorySection()]
            ),
        ),
        "scope": (
            "Recall/Search",
            t.SearchRequest(session=ref("s"), query="x", scope=t.SearchScope.SEARCH_SCOPE_MEMORY),
        ),
    }
    rpcs = {rpc.method.removeprefix("contextengine.v1."): rpc for rpc in contract.rpcs()}
    for field, (method, request) in asked.items():
        answer = await house.raw(rpcs[method], request.SerializeToString())
        assert answer.code == "UNIMPLEMENTED", field
        assert answer.error is not None
        assert [violation.field for violation in answer.error.violations] == [field]
