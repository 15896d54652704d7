"""No text in any span, and every span in the docs, of a service that was asked everything."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.tracing.everything import CANARY, asked_everything
from tests.tracing.receiver import CLIENT, Receiver
from tests.tracing.test_document import not_in_the_docs

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = {
    "load",
    "commit",
    "plan",
    "laws",
    "reply",
    "project",
    "compact",
    "summarize",
    "search",
    "expand",
    "tool",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Receiver]:
    async with asked_everything(tmp_path_factory.mktemp("everything")) as seen:
        yield seen


async def test_everything_was_seen(seen: Receiver) -> None:
    names = {span.name for span in seen}
    assert names >= NAMES | {"chat", "chat small"}
    rpcs = {name.rpartition("/")[2] for name in names if "/" in name}
    assert len(rpcs) > 20
    kinds = {span.attributes.get("error.type") for span in seen}
    assert {"INVALID_ARGUMENT", "InternalServerError", "BadRequestError"} <= kinds


async def test_no_text_is_in_any_span(seen: Receiver) -> None:
    spans = [str(span.raw) for span in seen]
    assert len(spans) > 200
    assert [span for span in spans if CANARY in span.lower()] == []


async def test_the_docs_say_of_every_span_what_it_is(seen: Receiver) -> None:
    wrong = {wrong for span in seen for wrong in not_in_the_docs(span.name, span.attributes)}
    assert sorted(wrong) == []


async def test_calls_to_models_follow_the_conventions_for_generative_ai(seen: Receiver) -> None:
    calls = [span for span in seen if span.name.startswith("chat")]
    for call in calls:
        assert call.raw.kind == CLIENT
        assert call.attributes["gen_ai.operation.name"] == "chat"
        assert call.attributes["gen_ai.provider.name"] in ("model", "runtime")
    answered = [call.attributes for call in calls if "error.type" not in call.attributes]
    assert any(
        {"gen_ai.usage.input_tokens", "gen_ai.response.model"} <= set(known) for known in answered
    )
