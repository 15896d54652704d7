"""A session of Hermes made up from a seed, as Hermes 0.19 lives it (agent/conversation_loop.py,
agent/conversation_compression.py, hermes_state.py): what it does to its list, when it calls its
context engine and its hooks, what it finds again on its disk."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any
from unittest.mock import patch

from grpc import StatusCode

from contextengine import Client
from contextengine.errors import Unavailable
from contextengine_hermes.block import part
from tests.hosts.hermes_list import Row, from_disk, paired, repaired, text

TASK_LIST = (
    "[Your active task list was preserved across context compression]\n- [>] 1. go on (in_progress)"
)
STEER = "\n\n[OUT-OF-BAND USER MESSAGE]\n{}\n[/OUT-OF-BAND USER MESSAGE]"
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
CANCELLED = "[Tool execution cancelled: the user interrupted]"


class _ContextEngine:
    """As the plugin relies on Hermes'."""

    threshold_percent = 0.75

    def on_session_reset(self) -> None:
        self.last_prompt_tokens = self.compression_count = 0

    def get_status(self) -> dict[str, Any]:
        return {}

    def update_model(self, model: str, context_length: int, *more: str) -> None:
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)


@contextmanager
def standing_in() -> Iterator[None]:
    """While the plugin is imported: what it imports of Hermes, whether or not that is there. Other
    tests have stand-ins of their own."""
    module = ModuleType("agent.context_engine")
    module.ContextEngine = _ContextEngine  # type: ignore[attr-defined]
    with patch.dict(sys.modules, {"agent": ModuleType("agent"), module.__name__: module}):
        yield


class Moody:
    """A client whose service is away now and then: before it heard of a call or after."""

    def __init__(self, client: Client, random: Random) -> None:
        self._client, self._random = client, random
        self.away = 0.0
        self.proposes = False
        """Whether the last compaction had something to change."""

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._client, name)
        if not callable(called):
            return called

        def call(*given: Any, **named: Any) -> Any:
            lot = self._random.random()
            if lot < self.away / 2:
                raise Unavailable("away", code=StatusCode.UNAVAILABLE)
            answer = called(*given, **named)
            self.proposes = answer.changed if name == "compact" else self.proposes
            if lot < self.away:
                raise Unavailable("away, having heard", code=StatusCode.UNAVAILABLE)
            return answer

        return call


class Life:
    """One conversation, and what Hermes does with it."""

    def __init__(
        self, service: Any, engine: Callable[[], Any], plugin: Any, random: Random
    ) -> None:
        self._service, self._engine, self._plugin, self._random = service, engine, plugin, random
        self.moody: Moody = service.client
        self.session = self._id()
        self.in_place = random.random() < 0.7
        """Whether a compacted conversation keeps its id. Where it does not, what was said before is
        not its own to take back."""
        self.todo = random.random() < 0.4
        self.rows: list[Row] = []
        """Hermes' list."""
        self.said: dict[int, Row] = {}
        """What was said, by a number that rises: the conversation as it is."""
        self._number = 0
        self.compactions = 0
        self.reviewing = False
        self._agent = self._begin()

    def _id(self) -> str:
        return f"h{self._random.getrandbits(40):x}"

    def _begin(self) -> Any:
        agent = self._engine()
        agent.update_model(model="m", context_length=32_000)
        agent.threshold_tokens = 4_000
        agent.on_session_start(self.session, platform="cli", model="m", context_length=32_000)
        return agent

    # What is said.

    def say(self, row: Row) -> Row:
        self._number += 1
        row["_life"] = ((self._number,),)
        self.said[self._number] = row
        self.rows.append(row)
        return row

    def words(self, least: int = 5) -> str:
        if self._random.random() < 0.15:
            return self._random.choice(["go on", "yes", "again"])
        count = self._random.randint(least, 60)
        made = " ".join(f"w{self._random.getrandbits(16)}" for _ in range(count))
        return made + ("\n" if self._random.random() < 0.1 else "")

    # A turn.

    def turn(self, words: Any = None) -> None:
        """As run_conversation."""
        lot = self._random.random
        row: Row = {"role": "user", "content": words or self.words()}
        if words is None and lot() < 0.1:
            row["content"] = [{"type": "text", "text": self.words()}, dict(PICTURE)]
        elif words is None and lot() < 0.1:
            row["_clean"] = row["content"]
            row["content"] = f"[a note for the model]\n\n{row['content']}"
        self.say(row)
        if lot() < 0.15:
            self.compress()
        if isinstance(row["content"], str) and lot() < 0.15:
            users = [one for one in self.rows if one["role"] == "user"]
            if "_clean" not in users[-1]:
                users[-1]["api_content"] = f"{users[-1]['content']}\n\n<memory-context/>"
        for _ in range(self._random.randint(1, 5)):
            if lot() < 0.06:
                self.compress()
            if self.rows[-1]["role"] == "tool" and lot() < 0.05 and self.in_place:
                self._steer()
            repaired(self.rows)
            self._fold()
            self._plugin.before_request(
                session_id=self.session, conversation_history=list(self.rows), model="m"
            )
            if lot() < 0.06 and self.in_place:
                return  # the provider failed, or the user interrupted the request
            self._agent.update_from_response({"prompt_tokens": 900, "completion_tokens": 30})
            if lot() < 0.4:
                break
            if not self._works():
                return
            if self._agent.should_compress(900):
                self.compress()
        else:
            return
        self.say({"role": "assistant", "content": self.words(), "finish_reason": "stop"})
        self._plugin.after_turn(session_id=self.session, conversation_history=list(self.rows))
        if lot() < 0.1:
            self._review()

    def _works(self) -> bool:
        """A reply with calls and their results. False: the turn was interrupted."""
        lot = self._random.random
        calls: list[Row] = []
        for at in range(self._random.randint(1, 3)):
            name = "ctx_search" if lot() < 0.15 else "terminal"
            arguments = '{"query": "w1"}' if name == "ctx_search" else '{"command": "ls"}'
            named = f"call_{at}" if lot() < 0.5 else f"call_{self._number}_{at}"
            function = {"name": name, "arguments": arguments}
            calls.append({"id": named, "type": "function", "function": function})
        reply: Row = {"role": "assistant", "content": "", "tool_calls": calls}
        if lot() < 0.5:
            reply["content"] = self.words()
        if lot() < 0.3:
            reply["reasoning_content"] = "hm"
        self.say(reply)
        interrupted = lot() < 0.08
        for at, call in enumerate(calls):
            if call["function"]["name"] == "ctx_search":
                self._agent.handle_tool_call("ctx_search", {"query": "w1"}, messages=self.rows)
            said = CANCELLED if interrupted and at else self.words(20)
            content: Any = said
            if lot() < 0.05:
                content = [{"type": "text", "text": said}, dict(PICTURE)]
            name = call["function"]["name"]
            found: Row = {"role": "tool", "name": name, "tool_name": name, "content": content}
            self.say({**found, "tool_call_id": call["id"]})
            if lot() < 0.05:
                self._steer()
        return not interrupted

    def _steer(self) -> None:
        """A user's words while tools run: they stand at the end of the newest result."""
        row = next(row for row in reversed(self.rows) if row["role"] == "tool")
        if "_life" not in row:
            return  # shown in short
        marker = STEER.format(self.words())
        if isinstance(row["content"], str):
            row["content"] += marker
        else:
            row["content"] = [*row["content"], {"type": "text", "text": marker}]

    def _review(self) -> None:
        """Hermes looks back in an agent of its own, which ends under the session's id."""
        self.reviewing = True
        looking = self._engine()
        looking.on_session_start(self._id(), platform="cli", model="m")
        asked = {"role": "user", "content": "Review the conversation above"}
        self._plugin.before_request(
            session_id=self.session, conversation_history=[*self.rows, asked]
        )
        looking.on_session_end(self.session, [*self.rows, asked])
        self.reviewing = False

    def _fold(self) -> None:
        """What Hermes joined is one message, but for what is parted by a block of ours."""
        for row in self.rows:
            groups = row.get("_life", ())
            words = [row["content"]]
            if isinstance(row["content"], str) and "<contextengine" in row["content"]:
                words = [piece for piece in part(row["content"]).pieces if isinstance(piece, str)]
            if not groups:
                continue
            assert len(groups) == len(words), (groups, words)
            for numbers, content in zip(groups, words, strict=True):
                for number in numbers[1:]:
                    self.said.pop(number, None)
                self.said[numbers[0]] = {**row, "content": content}
            row["_life"] = tuple(numbers[:1] for numbers in groups)

    # What a user does to a conversation.

    def undo(self, turns: int = 1) -> Any:
        """As undo_last and retry_last. Answers what was said."""
        users = [at for at, row in enumerate(self.rows) if row["role"] == "user"]
        if not users or not self.in_place:
            return None  # what a session goes on from is not its own to take back
        cut = users[-min(turns, len(users))]
        if text(self.rows[cut]["content"]).startswith(("<contextengine", TASK_LIST)):
            return None  # it would take back all that is summarized
        words = self.rows[cut]["content"]
        for row in self.rows[cut:]:
            for numbers in row.get("_life", ()):
                for number in numbers:
                    self.said.pop(number, None)
        self.rows = self.rows[:cut]
        return words

    def retry(self) -> None:
        words = self.undo()
        if words:
            self.turn(text(words))

    def compress(self, focus: str | None = None, force: bool = False) -> None:
        self.rows = self._compressed(self.rows, focus, force)

    def compress_here(self) -> None:
        """As `/compress here`: the newest exchanges ride along."""
        users = [at for at, row in enumerate(self.rows) if row["role"] == "user"]
        if len(users) < 3:
            return
        head, tail = self.rows[: users[-2]], self.rows[users[-2] :]
        given = copy.deepcopy(head)
        self.moody.proposes = False
        made = self._compressed(head, None, True)
        due = self.in_place and not self.moody.away and self.moody.proposes
        assert not due or made != given, "nothing was compacted"
        self.rows = made + tail

    def _compressed(self, rows: list[Row], focus: str | None, force: bool) -> list[Row]:
        """As compress_context."""
        before = copy.deepcopy(rows)
        tokens = 1_000 + sum(len(text(row["content"])) for row in rows) // 2
        made = self._agent.compress(rows, current_tokens=tokens, focus_topic=focus, force=force)
        if self._agent._last_compress_aborted:
            return rows
        if made == before:
            return rows
        assert made, "Hermes refuses an empty list"
        assert self._agent._last_compression_made_progress, "what is not changed is the same list"
        self.compactions += 1
        paired(made)
        if self.todo:
            made.append({"role": "user", "content": TASK_LIST, "_todo_snapshot_synthetic": True})
        self._agent.on_session_end(self.session, rows)
        old = self.session
        if not self.in_place:
            self.session = self._id()
        made = [self._known(row) for row in made]
        self._agent.on_session_start(
            self.session, boundary_reason="compression", old_session_id=old, platform="cli"
        )
        self._agent.last_prompt_tokens = -1
        self._agent.awaiting_real_usage_after_compression = True
        return list(made)

    def _known(self, row: Row) -> Row:
        """A message of a compacted list, with the number of what was said in it."""
        row["_whole"] = True
        own = text(row["content"]).startswith(("<contextengine", TASK_LIST))
        if len(row.get("_life", ())) != 1 and not own:
            row = {key: row[key] for key in row if key != "_life"}
            for number, said in reversed(self.said.items()):
                if said["role"] == row["role"] and text(said["content"]) == text(row["content"]):
                    row["_life"] = ((number,),)
                    break
        return row

    def restart(self) -> None:
        """Another process of Hermes goes on, or the gateway's next turn."""
        self.rows = from_disk(self.rows)
        if self._random.random() < 0.5:
            self._service._conversations.clear()
            self._agent = self._begin()
        repaired(self.rows)

    def end(self) -> None:
        """As the CLI ends."""
        self._agent.on_session_end(self.session, self.rows)
