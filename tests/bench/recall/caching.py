"""How much of what is sent, step by step, is what was sent the step before: the share that a
provider's prompt cache serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from contextengine import types as t
from contextengine.formats import read_transcript
from tests.integration.assemble.asking import CODING, ask, settled
from tests.integration.harness import House, budget, ref


@dataclass(slots=True)
class Cached:
    """What a replay came to."""

    steps: int = 0
    sent: int = 0
    """Tokens of all steps after the first."""
    kept: int = 0
    """Those of them that begin what was sent the step before."""
    epochs: int = 0
    """How often a new epoch began."""
    summaries: int = 0
    """Summaries made on the way, and still shown at the end."""

    @property
    def share(self) -> float:
        """Of the tokens sent, those that were sent before."""
        return self.kept / self.sent if self.sent else 0.0

    @property
    def steps_an_epoch(self) -> float:
        """Steps for each new epoch."""
        return self.steps / self.epochs if self.epochs else float(self.steps)


async def replay(house: House, size: int, limit: int | None = None) -> Cached:
    """Plays the coding session: an assembly before each of the model's messages, with a budget of
    `size` tokens, and the background's work done before the next. `limit`: at most so many
    messages."""
    result, epoch = Cached(), ""
    before: t.AssembleResponse | None = None
    async for reply in assemblies(house, ref(f"coding-{size}"), size, limit):
        if before is not None:
            result.steps += 1
            result.sent += tokens_of(reply)
            result.kept += common(before, reply)
            result.epochs += reply.context_projection.epoch != epoch
        before, epoch = reply, reply.context_projection.epoch
        result.summaries = sum(item.HasField("summary") for item in reply.items)
    return result


async def assemblies(
    house: House, session: t.SessionRef, size: int, limit: int | None = None
) -> AsyncIterator[t.AssembleResponse]:
    """The assemblies before each of the model's messages, the background's work done after each."""
    messages = next(iter(read_transcript(CODING))).messages[:limit]
    new: list[t.Message] = []
    for number, message in enumerate(messages):
        message.id = message.id or f"m{number}"
        if message.role == t.ROLE_ASSISTANT and new:
            reply = await ask(house, session, ingest=new, budget=budget(size))
            new = []
            await settled(house, session)
            yield reply
        new.append(message)


def tokens_of(reply: t.AssembleResponse) -> int:
    """Of all that it shows."""
    return sum(item.tokens for item in reply.items)


def common(before: t.AssembleResponse, now: t.AssembleResponse) -> int:
    """The tokens of the longest common prefix; none where what stands before the items is
    another."""
    if before.system_prompt_addition != now.system_prompt_addition:
        return 0
    kept = 0
    for old, new in zip(before.items, now.items, strict=False):
        if old.content_hash != new.content_hash:
            break
        kept += new.tokens
    return kept
