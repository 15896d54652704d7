"""What laws 1 to 8 say of an assembly: the items as they are sent, against everything that is known
of the session.

One function a law, each over the whole list. `broken` answers every law that is broken, with the
reason.
"""

from __future__ import annotations

from contextengine_proto.v1 import message_pb2 as pb

from . import bounded, masked, offloaded, reasoned, summaries
from .known import Known, Placed, SentList
from .pairs import Shown, ViewRow, outside, pinned


def broken(known: Known, sent: SentList) -> list[tuple[int, str]]:
    """Every law that is broken, in order, with the reason."""
    placed = _place(known, sent)
    laws = (_pairs, _pending, _reasoning, _intent, _budget, _tail, _honesty, _scope)
    return [
        (number, why)
        for number, law in enumerate(laws, 1)
        if (why := law(known, sent, placed)) is not None
    ]


def shows(shown: Shown, item: pb.Item, rows: dict[int, ViewRow]) -> bool:
    """True where an item shows exactly this, verbatim."""
    message, origin = item.message, item.origin.WhichOneof("kind")
    if shown.kind == "no result":
        part = message.parts[0].tool_result if len(message.parts) == 1 else pb.ToolResultPart()
        return (
            origin == "synthetic"
            and message.role == pb.ROLE_TOOL
            and message.id.startswith("ce:")
            and part.call_id == shown.call
            and part.is_error
            and "no result was recorded" in part.parts[0].text.text.lower()
        )
    if origin != "sequence" or item.origin.sequence != shown.sequence:
        return False
    row = rows[shown.sequence].message
    if shown.kind == "whole":
        return message == row if item.form == pb.FORM_UNSPECIFIED else _only_marked(item, row)
    if shown.kind == "parts":
        return (
            item.form == pb.FORM_SOME_PARTS
            and not message.HasField("native")
            and message.role == row.role
            and message.id == row.id
            and list(message.parts) == [row.parts[part] for part in shown.parts]
        )
    texts = [part.text.text for part in message.parts]
    return (
        item.form == pb.FORM_NOTE
        and message.role == pb.ROLE_USER
        and message.id.startswith("ce:")
        and len(texts) == len(shown.parts)
        and all(
            _labelled(text, row.parts[part].tool_result)
            for text, part in zip(texts, shown.parts, strict=True)
        )
    )


def _labelled(text: str, result: pb.ToolResultPart) -> bool:
    return result.call_id in text.split("\n", 1)[0] and all(
        part.text.text in text for part in result.parts
    )


def _place(known: Known, sent: SentList) -> Placed:
    """Walks the view and the items side by side."""
    placed = Placed()
    places = [
        (g, s) for g, group in enumerate(known.listing.groups) for s in range(len(group.shown))
    ]
    at = 0
    floor = -1
    for item in sent.items:
        if item.origin.WhichOneof("kind") == "summary_id":
            covered = [g for g, c in known.covered.items() if c.id == item.origin.summary_id]
            begins = min(covered, default=None)
            if begins is not None and (begins <= floor or any(g >= begins for g in placed.shown)):
                placed.wrong.append(
                    f"summary {item.origin.summary_id} is not where what it covers begins"
                )
            if begins is not None:
                floor = begins
                while at < len(places) and places[at][0] < begins:
                    at += 1
            continue
        step = at
        while step < len(places) and not _stands_for(
            known, known.listing.groups[places[step][0]].shown[places[step][1]], item
        ):
            step += 1
        if step == len(places):
            placed.wrong.append(
                f"item {item.id!r} is twice, out of order, altered, or not in the view at all"
            )
            continue
        group, place = places[step]
        placed.shown.setdefault(group, {})[place] = item
        at = step + 1
    return placed


def _stands_for(known: Known, shown: Shown, item: pb.Item) -> bool:
    """True where an item shows this, verbatim or in a form that an engine gives."""
    if item.form not in (pb.FORM_UNSPECIFIED, pb.FORM_SOME_PARTS, pb.FORM_NOTE):
        return item.origin.sequence == shown.sequence and shown.kind in ("whole", "parts")
    return shows(shown, item, known.by_sequence)


def _verbatim(known: Known, placed: Placed, group: int) -> bool:
    shown = known.listing.groups[group].shown
    items = placed.shown.get(group, {})
    return len(items) == len(shown) and all(
        shows(s, items[at], known.by_sequence) for at, s in enumerate(shown)
    )


def _pairs(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 1."""
    if placed.wrong:
        return placed.wrong[0]
    for index, items in placed.shown.items():
        if len(items) != len(known.listing.groups[index].shown):
            return f"of what begins at {known.listing.groups[index].first} only a part is shown"
    waiting: list[str] = []
    for number, item in enumerate(sent.items):
        calls, results = outside(item.message)
        for part in results:
            call_id = item.message.parts[part].tool_result.call_id
            if call_id not in waiting:
                return f"item {number} answers {call_id!r}, which no open call before it has"
            waiting.remove(call_id)
        speaks = len(results) < len(item.message.parts) or not item.message.parts
        if waiting and speaks and not results:
            return f"item {number} stands between calls and their results"
        waiting += calls
    newest_is_pending = bool(known.listing.groups) and known.listing.groups[-1].pending
    if waiting and not newest_is_pending:
        return f"calls {waiting} have no result and may not stand open"
    return None


def _pending(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 2. Results of a step that would not fit with them as they are may be head and tail."""
    groups = known.listing.groups
    if not groups or not groups[-1].pending or _verbatim(known, placed, len(groups) - 1):
        return None
    items = placed.shown.get(len(groups) - 1, {})
    for place, shown in enumerate(groups[-1].shown):
        item = items.get(place)
        if item is None or not (
            shows(shown, item, known.by_sequence)
            or (_only_results(item.message) and _shortened(known, sent, placed, item))
        ):
            return "the open calls of the newest assistant message are not verbatim"
    return None


def _only_results(message: pb.Message) -> bool:
    return bool(message.parts) and all(part.HasField("tool_result") for part in message.parts)


def _shortened(known: Known, sent: SentList, placed: Placed, item: pb.Item) -> bool:
    """True for a message that the next reply answers and that is shown head and tail, where the
    list would not fit with all of these as they are."""
    waiting = [index for index in known.waiting if index in placed.shown]
    items = [one for index in waiting for one in placed.shown[index].values()]
    if item.form != pb.FORM_HEAD_TAIL or not any(one is item for one in items):
        return False
    others = sent.tokens - sum(one.tokens for one in items)
    if known.evicts:
        others = sum(
            one.tokens
            for index in known.stays.difference(waiting)
            for one in placed.shown.get(index, {}).values()
        )
    whole = sum(known.costs.get(known.listing.groups[index].first, 0) for index in waiting)
    return others + whole > known.budget


def _reasoning(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 3."""
    groups = known.listing.groups
    newest_user = max((index for index, group in enumerate(groups) if group.user), default=-1)
    for index, items in placed.shown.items():
        for place, item in items.items():
            if groups[index].shown[place].kind in ("no result", "note"):
                continue
            row = known.by_sequence[item.origin.sequence].message
            sealed, there = _sealed(row), _sealed(item.message)
            if any(part not in sealed for part in there):
                return f"the reasoning of message {row.id!r} was altered"
            if len(there) == len(sealed):
                continue
            if not any(part in list(row.parts) for part in item.message.parts):
                continue  # absent with everything else
            if item.form != pb.FORM_WITHOUT_REASONING:
                return f"message {row.id!r} holds sealed reasoning and is shown in form {item.form}"
            if not known.reasoning_may_go:
                return (
                    f"message {row.id!r} stands without its reasoning, which its provider does not"
                    " accept"
                )
            if groups[-1].pending and index > newest_user:
                return f"message {row.id!r} lost its reasoning inside the open tool loop"
    return None


def _sealed(message: pb.Message) -> list[pb.Part]:
    return [
        part for part in message.parts if part.reasoning.signature or part.reasoning.redacted_data
    ]


def _intent(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 4."""
    for index in sorted(known.stays):
        group = known.listing.groups[index]
        for place, shown in enumerate(group.shown):
            item = placed.shown.get(index, {}).get(place)
            if not (group.leading or _must_be_verbatim(known, index, shown)):
                continue
            if item is None or not (
                shows(shown, item, known.by_sequence)
                or (not group.leading and _bounded_prompt(known, sent, index, item))
            ):
                return f"message {shown.sequence} must be verbatim"
    return None


def _must_be_verbatim(known: Known, index: int, shown: Shown) -> bool:
    """A user's message may carry a late result as well: that one stands behind its call, which need
    not stay."""
    if shown.kind in ("no result", "note"):
        return False
    return (index, shown.sequence) == known.listing.newest_user or pinned(
        known.by_sequence[shown.sequence].message
    )


def _only_marked(item: pb.Item, row: pb.Message) -> bool:
    """True where an item shows a message whole, but for base64 as what it is."""
    marked = bounded.with_markers(row, item)
    return item.form == pb.FORM_HEAD_TAIL and item.message == marked != row


def _bounded_prompt(known: Known, sent: SentList, index: int, item: pb.Item) -> bool:
    """True for a user's message, the newest or one that is pinned, shown head and tail, where the
    answer says so."""
    sequence = item.origin.sequence
    return (
        sent.prompt_bounded
        and item.form == pb.FORM_HEAD_TAIL
        and (
            (index, sequence) == known.listing.newest_user
            or pinned(known.by_sequence[sequence].message)
        )
    )


def _budget(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 5."""
    if sent.tokens <= known.budget:
        return None
    if not sent.over:
        return f"{sent.tokens} tokens exceed {known.budget} and nothing says so"
    if not known.evicts:
        return None
    if any(item.origin.WhichOneof("kind") == "summary_id" for item in sent.items):
        return "a summary is shown although the list exceeds the budget"
    needed = known.stays.union(known.waiting)
    more = [index for index, items in placed.shown.items() if items and index not in needed]
    return f"groups {more} are shown although the list exceeds the budget" if more else None


def _tail(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 6. What stands before the newest summary is no longer tail."""
    groups = known.listing.groups
    if not groups:
        return None
    newest = len(groups) - 1

    def there(index: int) -> bool:
        return not groups[index].shown or index in placed.shown

    if not there(newest) and newest not in known.covered:
        return "the newest step is not shown"
    raw = max(known.covered, default=-1) + 1
    given_up = [index for index in known.waiting if index >= raw and not there(index)]
    costs = sum(known.costs[groups[index].first] for index in given_up)
    if given_up and sent.tokens + costs <= known.budget:
        return f"steps {given_up} are to be answered, and are given up although they fit"
    begins = max(len(groups) - max(known.tail, 1), raw)
    for index in range(begins, newest + 1):
        for item in placed.shown.get(index, {}).values():
            if item.form in known.forms and item.form != pb.FORM_HEAD_TAIL:
                return f"step {index} of the tail is shown in form {item.form}"
    missing = [index for index in range(begins, newest + 1) if not there(index)]
    if not missing:
        return None
    older = [
        index
        for index in range(begins, missing[-1])
        if index in placed.shown and index not in known.stays
    ]
    if older:
        return f"step {missing[-1]} is given up before the older step {older[0]}"
    if sent.tokens + known.costs[groups[missing[-1]].first] <= known.budget:
        return f"step {missing[-1]} is given up although it fits"
    return None


def _honesty(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 7."""
    coverings = {covering.id: covering for covering in known.coverings}
    for item in sent.items:
        if (
            item.form not in (pb.FORM_UNSPECIFIED, pb.FORM_SOME_PARTS, pb.FORM_NOTE)
            and item.form not in known.forms
            and not _shortened(known, sent, placed, item)
        ):
            return f"form {item.form} was not declared"
        if item.form == pb.FORM_HEAD_TAIL:
            stored = known.by_sequence[item.origin.sequence].message
            why = bounded.dishonest(item, stored)
            if why is not None and offloaded.dishonest(item, stored) is not None:
                return f"message {stored.id!r} {why}"
        if item.form == pb.FORM_PLACEHOLDER:
            stored = known.by_sequence[item.origin.sequence].message
            why = masked.dishonest(item, stored)
            if why is not None:
                return f"message {stored.id!r} {why}"
        if item.form in (pb.FORM_WITHOUT_REASONING, pb.FORM_STRIPPED_TAGS):
            stored = known.by_sequence[item.origin.sequence].message
            why = reasoned.dishonest(item, stored)
            if why is not None:
                return f"message {stored.id!r} {why}"
        if item.origin.WhichOneof("kind") == "summary_id":
            covering = coverings.get(item.origin.summary_id)
            if covering is None:
                return f"summary {item.origin.summary_id} is not a live top-level one"
            why = summaries.dishonest(covering, item)
            if why is not None:
                return f"summary {covering.id} {why}"
    return None


def _scope(known: Known, sent: SentList, placed: Placed) -> str | None:
    """Law 8."""
    stored = [
        item for item in sent.items if item.origin.WhichOneof("kind") in ("sequence", "summary_id")
    ]
    if stored and not known.complete_scope:
        return "rows were read under an incomplete scope"
    for item in stored:
        if (
            item.origin.WhichOneof("kind") == "sequence"
            and item.origin.sequence not in known.by_sequence
        ):
            return f"message {item.origin.sequence} is not of this session"
    return None
