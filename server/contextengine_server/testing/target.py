"""The suite that every projection target passes.

    class TestMine(TargetSuite):
        target = TARGET

`makers` are the models that the form is judged for, `ways` how it is asked for where it can be
asked in more than one, `files` the real sessions that it is tried with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from msgspec.structs import replace

from contextengine_server.projection.model import ChatRole, Item, ItemCache, ProjectionImpossible
from contextengine_server.projection.model import Text as TextPart
from contextengine_server.projection.projection import Projection
from contextengine_server.projection.rules import RuleFinding
from contextengine_server.projection.target import Target
from contextengine_server.projection.task import Task

from .contexts import (
    AIRLINE,
    Maker,
    assistant,
    call,
    cut_contexts,
    numbered,
    random_context,
    result,
    summary,
    tool,
    transcripts,
    user,
)
from .json_places import keys_of, objects, texts, turned_round, with_value, without_entry

_BAD_IDS = ("", "a b", "c\n1", "ü", "x" * 300, "toolu_01-A")
"""Ids that some provider or other does not take."""


class TargetSuite:
    """All that a target promises."""

    target: ClassVar[Target]
    makers: ClassVar[Sequence[Maker]] = (Maker(),)
    """The models that will be called. Those whose reasoning the form sends back are worth
    naming."""
    ways: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    """Fields of the tasks, for each way of asking: a renderer, say."""
    files: ClassVar[Sequence[Path]] = (AIRLINE,)
    """Real sessions, in a format that `contextengine import` reads."""
    most_sessions: ClassVar[int] = 20
    """So many of each file are looked at."""
    seeds: ClassVar[int] = 60
    """How many random contexts are looked at."""

    def test_a_list_cut_anywhere_is_mended(self) -> None:
        """Whatever a list lacks, its form keeps the provider's rules."""
        for task in self._tasks():
            for name, items in cut_contexts(_maker(task)).items():
                try:
                    self._judged(replace(task, items=items), name)
                except ProjectionImpossible:
                    assert "surrogate" in name, f"{name}: is refused"

    def test_random_contexts_keep_the_rules(self) -> None:
        """So do messages in any order."""
        for task in self._tasks():
            for seed in range(self.seeds):
                items = random_context(Random(seed), _maker(task), 2 + seed % 30)
                self._judged(replace(task, items=items), f"seed {seed}")

    def test_real_sessions_keep_the_rules(self) -> None:
        """So do real sessions, and the beginnings of them."""
        for task in self._tasks():
            for name, items in self._sessions():
                self._judged(replace(task, items=items), name)
                self._judged(replace(task, items=items[: len(items) // 2]), f"half of {name}")

    def test_calls_and_results_carry_the_same_id(self) -> None:
        """An id that the provider takes stands at the call and at its result, and nowhere else."""
        shown = 0
        for task in self._tasks():
            ids, items = self._called()
            _, body = self._judged(replace(task, items=items), "ids that fit")
            places = [(place, text) for place, text in texts(body) if text in ids]
            shown += bool(places)
            for name in ids if places else ():
                count = sum(found == name for _, found in places)
                assert count == 2, f"the id {name!r} stands at {count} places: {body}"
        assert shown, "no way of asking shows a call by its id"

    def test_ids_that_the_provider_does_not_take_are_replaced_on_both_sides(self) -> None:
        """What stands where ids stand fits the format, once for a call and once for its result."""
        name = self.target.call_ids.replacement("used again")
        reused = [part for _ in range(2) for part in _round(name)]
        beside = [assistant("", call(name), call(name)), tool(result(name), result(name))]
        bad = [part for one in _BAD_IDS for part in _round(one)]
        items = numbered([user("x"), *reused, *beside, *bad, assistant("so"), user("y")])
        rounds = 2 + 2 + len(_BAD_IDS)
        for task, keys in self._id_keys():
            _, body = self._judged(replace(task, items=items), "ids that do not fit")
            found = [text for place, text in texts(body) if keys_of(place) in keys]
            for one in found:
                assert self.target.call_ids.fits(one), f"the id {one!r} does not fit: {body}"
                assert found.count(one) == 2, f"the id {one!r} stands {found.count(one)} times"
            assert len(set(found)) == rounds, f"{rounds} calls have {len(set(found))} ids: {body}"
            _, again = self._judged(replace(task, items=[*items, user("z")]), "a later list")
            later = [text for place, text in texts(again) if keys_of(place) in keys]
            assert later == found, "an id is another in a later projection"

    def test_the_validator_sees_what_is_wrong_with_pairs(self) -> None:
        """Its own rules find a result that is gone, one that answers another call, and results
        before their calls."""
        for task, _ in self._id_keys():
            ids, items = self._called()
            _, body = self._judged(replace(task, items=items), "what is damaged below")
            place = [place for place, text in texts(body) if text in ids][-1]
            lists = max(at for at, key in enumerate(place) if isinstance(key, int))
            for wrong, damaged in (
                ("a result is gone", without_entry(body, place[: lists + 1])),
                ("a result has the id of no call", with_value(body, place, ids[0] + "0")),
                ("the list is turned round", turned_round(body, place)),
            ):
                found = self._found(damaged, task.model)
                assert found, f"the validator finds nothing though {wrong}: {damaged}"

    def test_all_that_was_said_is_shown_and_nothing_of_it_becomes_an_instruction(self) -> None:
        """Texts are there; instructions are the caller's, and the session's own leading ones."""
        items = [
            Item(ChatRole.SYSTEM, (TextPart("word1policy"),), sequence=1),
            summary("word2summary", 2, 9),
            *numbered(
                [
                    user("word3asked"),
                    assistant("word4looked", call("c1")),
                    tool(result("c1", "word5found")),
                    assistant("word6answered"),
                    Item(ChatRole.CUSTOM, (TextPart("word7noted"),), custom_role="notice"),
                    user("word8next"),
                ],
                10,
            ),
        ]
        given = ["word0base", "word1policy", "word1addition"]
        said = ["word2summary", "word3asked", "word4looked", "word5found", "word6answered"]
        said += ["word7noted", "word8next"]
        for task in self._tasks():
            wanted = replace(task, items=items, base="word0base", addition="word1addition")
            projection, body = self._judged(wanted, "texts")
            whole = json.dumps(body)
            missing = [word for word in (*given, *said) if word not in whole]
            assert not missing, f"{missing} is not shown: {whole}"
            instructions = projection.instructions + projection.system_json.decode()
            for word in said:
                assert word not in instructions, f"{word} became an instruction: {instructions}"

    def test_this_turns_prompt_is_shown_once(self) -> None:
        """Also where the newest message says the same."""
        for task in self._tasks():
            prompt = (TextPart("word9prompt"),)
            history = numbered([user("x"), assistant("a")])
            for items in (history, [*history, user("word9prompt ", 3)]):
                _, body = self._judged(replace(task, items=items, prompt=prompt), "a prompt")
                assert json.dumps(body).count("word9prompt") == 1, f"not once: {body}"

    def test_equal_tasks_give_equal_bytes(self) -> None:
        """Whatever was projected in between, and though the items are others."""
        for task in self._tasks():
            for seed in range(10):
                first, second = (
                    self.target.project(
                        replace(task, items=random_context(Random(seed), _maker(task), 25))
                    )
                    for _ in range(2)
                )
                assert first == second, f"seed {seed}"

    def test_what_is_kept_of_items_is_what_would_be_made_anew(self) -> None:
        """Items come again among other neighbours, and lists go on."""
        for task in self._tasks():
            for seed in range(6):
                random = Random(seed)
                items = random_context(random, _maker(task), 30)
                kept = [replace(item, cache=ItemCache()) for item in items]
                for _ in range(8):
                    first = random.randrange(len(items))
                    some = [at for at in range(first, len(items)) if random.random() < 0.9]
                    self._alike(task, kept, items, some)
                for end in range(1, len(items), 2):
                    self._alike(task, kept, items, range(end))

    def test_a_longer_list_begins_as_the_shorter_did(self) -> None:
        """A list that goes on, its calls answered, changes no entry but the last, to which the same
        role may add."""
        for task in self._tasks():
            for name, items in self._sessions():
                before: list[Any] = []
                for end in _ends(items):
                    shown = replace(task, items=items[:end], breakpoints=0)
                    now = _entries(self.target.project(shown))
                    kept = before[:-1]
                    assert now[: len(kept)] == kept, f"{name} at {end}"
                    before = now

    def test_breakpoints_are_at_most_those_asked_for(self) -> None:
        """Where the form has any; else the number asked for changes nothing."""
        mark = self.target.cache_mark
        for task in self._tasks():
            items = [summary("what was", 1, 4), *_called_often()]
            shown = replace(task, items=items, base="You help.")
            if not mark:
                few, many = (self.target.project(replace(shown, breakpoints=n)) for n in (0, None))
                assert few == many, "the record names no mark, but breakpoints change something"
                continue
            for limit in (0, 1, 2, 3, 4, 40, None):
                _, body = self._judged(replace(shown, breakpoints=limit), f"{limit} breakpoints")
                count = sum(mark in one for one in objects(body))
                assert bool(count) == (limit != 0), f"{count} marks of {limit}"
                assert count <= (40 if limit is None else limit), f"{count} marks of {limit}"

    def test_losses_say_where_and_what(self) -> None:
        """Each names an item of the list, or none, and says what was lost by which rule."""
        for task in self._tasks():
            for seed in range(20):
                items = random_context(Random(seed), _maker(task), 20)
                for loss in self.target.project(replace(task, items=items)).losses:
                    assert -1 <= loss.index < len(items), f"{loss} of {len(items)} items"
                    assert loss.what.strip(), f"{loss} says nothing"
                    assert loss.rule.strip(), f"{loss} names no rule"

    def test_an_empty_list_is_warned_of(self) -> None:
        """A provider refuses it, though there is a system prompt."""
        system = [Item(ChatRole.SYSTEM, (TextPart("Policy."),), sequence=1)]
        for task in self._tasks():
            projection = self.target.project(replace(task, items=system))
            if projection.messages_json == b"[]":
                names = [warning.partition(":")[0] for warning in projection.warnings]
                assert "empty_messages" in names, f"there is no warning but {names}"

    def _tasks(self) -> Iterator[Task]:
        """What is asked, in each way and for each model, but for the items."""
        for way in self.ways:
            for maker in self.makers:
                yield Task(
                    items=[],
                    budget=1_000_000,
                    epoch="e1",
                    engine_id="dag",
                    provider=maker.provider,
                    model=maker.model,
                    **way,
                )

    def _judged(self, task: Task, what: str) -> tuple[Projection, Any]:
        """A projection and its body as it is read from JSON, once the rules find nothing."""
        projection = self.target.project(task)
        body = json.loads(json.dumps(self.target.body(projection)))
        found = self._found(body, task.model)
        assert not found, f"{what}: {found} in {body}"
        if self.target.alternates:
            roles = [entry["role"] for entry in _entries(projection)]
            beside = [role for role, following in pairwise(roles) if role == following]
            assert not beside, f"{what}: {beside} stand side by side in {body}"
        return projection, body

    def _found(self, body: Any, model: str) -> list[RuleFinding]:
        return [one for one in self.target.validator(body, model) if not one.advice]

    def _alike(
        self, task: Task, kept: Sequence[Item], items: Sequence[Item], places: Iterable[int]
    ) -> None:
        """Holds that items with a cache give what those without one give."""
        some = list(places)
        warm = self.target.project(replace(task, items=[kept[at] for at in some]))
        cold = self.target.project(replace(task, items=[items[at] for at in some]))
        assert warm == cold, f"the items {some}"

    def _called(self) -> tuple[list[str], list[Item]]:
        """Ids that the provider takes, and an orderly list of calls that have them."""
        ids = [self.target.call_ids.replacement(f"call {at}") for at in range(3)]
        first, second, third = ids
        items = [
            user("word1"),
            assistant("word2", call(first), call(second)),
            tool(result(first, "word3"), result(second, "word4")),
            assistant("word5"),
            user("word6"),
            assistant("word7", call(third)),
            tool(result(third, "word8")),
            assistant("word9"),
            user("word10"),
        ]
        return ids, numbered(items)

    def _id_keys(self) -> Iterator[tuple[Task, set[tuple[str, ...]]]]:
        """The ways of asking that show calls by their ids, and the keys under which these stand."""
        for task in self._tasks():
            ids, items = self._called()
            _, body = self._judged(replace(task, items=items), "ids that fit")
            keys = {
                keys_of(place)
                for place, _ in [(place, text) for place, text in texts(body) if text in ids]
            }
            if keys:
                yield task, keys

    def _sessions(self) -> Iterator[tuple[str, list[Item]]]:
        for file in self.files:
            for number, items in enumerate(islice(transcripts(file), self.most_sessions)):
                yield f"session {number} of {file.name}", items


def _maker(task: Task) -> Maker:
    return Maker(task.provider, task.model)


def _round(name: str) -> list[Item]:
    return [assistant("", call(name)), tool(result(name)), assistant("so"), user("and")]


def _called_often() -> list[Item]:
    items = [part for at in range(4) for part in _round(f"call-{at}-of-a-turn")]
    return numbered([user("x"), *items, user("newest")], 5)


def _entries(projection: Projection) -> list[Any]:
    """What a projection shows, entry by entry: the list, the items to inject, or the context as it
    stands in the prompt, by characters."""
    if projection.messages_json:
        return list(json.loads(projection.messages_json))
    if projection.inject_items_json:
        return [json.loads(item) for item in projection.inject_items_json]
    if projection.context_range is None:
        return []
    start, end = projection.context_range
    return list(projection.prompt.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le"))


def _ends(items: Sequence[Item]) -> list[int]:
    """Where a list may end, so that what follows changes nothing of it: behind a message of the
    model that calls nothing. About a dozen of these places, the last among them."""
    ends = [
        at
        for at, item in enumerate(items, 1)
        if item.role is ChatRole.ASSISTANT and not any(part.kind == "call" for part in item.parts)
    ]
    return ends[:: -max(1, len(ends) // 12)][::-1]
