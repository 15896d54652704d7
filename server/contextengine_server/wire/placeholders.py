"""What stands in place of a result that is not shown, or not all of it: why, how much it was and
how to get it back.

Each begins with words that a program can rely on. Comis's placeholders
(packages/agent/src/context-engine/observation-masker.ts, dead-content-evictor.ts,
microcompaction-guard.ts) are told apart by their beginnings too; its `[Tool result summarized: `
and `[Tool result offloaded to disk: ` are kept.
"""

from __future__ import annotations

import re

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import (
    OFFLOADED_HEAD,
    OFFLOADED_TAIL,
    Gone,
    Replacement,
)

from .bounded import left_out_marker, texts_in
from .tails import ends_of

BEGINNINGS = {
    Gone.SUPERSEDED: "[superseded: ",
    Gone.OLD_IMAGE: "[evicted image: ",
    Gone.OLD_ERROR: "[evicted error: ",
    Gone.MASKED: "[Tool result summarized: ",
    Gone.OFFLOADED: "[Tool result offloaded to disk: ",
}
"""How each begins."""
WHOLE_CHARS, HEAD_CHARS, TAIL_CHARS = 500, 350, 150
"""Of a masked result so many characters are still shown: all of them, or head and tail."""
MAX_TOOL_CHARS = 64
IMAGE_REMOVED = "[image removed during context pruning]"
"""What stands for the pictures of a result that session pruning shows in short."""
IMAGE_SEEN = "[image data removed - already processed by model]"
"""What stands for a picture that the model has seen some turns ago, as in OpenClaw
(src/agents/pi-embedded-runner/run/history-image-prune.ts)."""
_PICTURE = re.compile(
    rf"(?:{re.escape(IMAGE_SEEN)}\n\[|{re.escape(BEGINNINGS[Gone.OLD_IMAGE])}it is old; )"
    r"(?:expand sequence \d{1,15}(?: with \S{1,64})? to (?:see|read) it|the caller has it)\]"
)
_WRITTEN_DOWN = re.compile(r"(?:\A|\n)\[screenshot\](?=\n|\Z)")
"""What Hermes keeps of a picture when it writes a message down, in a line of the message's text
(run_agent.py, _flush_messages_to_session_db)."""
IMAGE_CHARS, OTHER_CHARS = 6_400, 256
"""What is not text is taken for so many characters, as in Comis
(packages/agent/src/safety/token-estimator.ts)."""


def replace_part(part: pb.Part, how: Replacement, sequence: int) -> None:
    """Puts a marker in place of a picture, or of what a result says. `sequence`: where the message
    is stored; 0: it is not."""
    if not part.HasField("image"):
        replace_result(part.tool_result, how, sequence)
        return
    seen = how.why is Gone.SEEN
    part.text.text = (
        _seen(how, sequence) if seen else BEGINNINGS[how.why] + _marker("", how, sequence)
    )


def stands_for_picture(text: str) -> bool:
    """True for what `replace_part` puts in place of a picture, and for nothing else."""
    return _PICTURE.fullmatch(text) is not None


def without_pictures(text: str) -> str:
    """A text without the lines in which a harness keeps that there were pictures."""
    return _WRITTEN_DOWN.sub("", text) if "[screenshot]" in text else text


def replace_result(result: pb.ToolResultPart, how: Replacement, sequence: int) -> None:
    """Puts a marker in place of what a result says. `sequence`: where it is stored; 0: it is not.

    Of one that is offloaded or cut, pictures and files stay: only the harness could bring them
    back.
    """
    texts = [text.text for text in texts_in(result.parts)]
    match how.why:
        case Gone.OFFLOADED:
            shown = _reference("".join(texts), chars_of(result), how, sequence)
        case Gone.SILENT:
            shown = f'[Tool "{_line(how.tool)}" returned no output.]'
        case Gone.CUT:
            shown = _cut("".join(texts), how.chars, sequence)
        case Gone.TRIMMED | Gone.CLEARED:
            shown = _pruned("\n".join(texts), how, sequence, pictured=_pictured(result))
            del result.parts[:]
        case Gone.SEEN:
            for part in result.parts:
                if part.HasField("image"):
                    part.text.text = _seen(how, sequence)
            return
        case _:
            del result.parts[:]
            shown = BEGINNINGS[how.why] + _marker("\n".join(texts), how, sequence)
    others = [part for part in result.parts if part.WhichOneof("kind") != "text"]
    kept = pb.ToolResultPart(parts=[pb.Part(text=pb.TextPart(text=shown)), *others])
    del result.parts[:]
    result.parts.extend(kept.parts)


def chars_of(result: pb.ToolResultPart) -> int:
    """The characters of a result, and what is taken for those of pictures and all else."""
    kinds = [part.WhichOneof("kind") for part in result.parts]
    others = sum(kind not in ("text", "image") for kind in kinds)
    return text_chars_of(result) + IMAGE_CHARS * kinds.count("image") + OTHER_CHARS * others


def text_chars_of(result: pb.ToolResultPart) -> int:
    """The characters of its texts alone."""
    return sum(len(text.text) for text in texts_in(result.parts))


def _reference(text: str, chars: int, how: Replacement, sequence: int) -> str:
    """How to read all of it comes first: a preview may look like the whole."""
    back = "The caller has all of it."
    if sequence:
        call = f'{how.reader} {{"sequences": [{sequence}]}}'
        back = f"All of it is stored: expand sequence {sequence} to read it, in pages, by {call}"
    head = text[:OFFLOADED_HEAD]
    tail = text[-OFFLOADED_TAIL:] if len(text) > OFFLOADED_HEAD + OFFLOADED_TAIL else ""
    lines = [
        f"{BEGINNINGS[Gone.OFFLOADED]}{_line(how.tool)} returned {chars} chars. hasMore=true",
        back,
        f"--- head ({len(head)} chars) ---\n{head}",
        f"--- tail ({len(tail)} chars) ---\n{tail}" if tail else "",
        "]",
    ]
    return "\n".join(filter(None, lines))


def _cut(text: str, room: int, sequence: int) -> str:
    if len(text) <= room:
        return text
    head, tail = ends_of(text, room)
    return text[:head] + left_out_marker(tail - head, len(text), sequence) + text[tail:]


def _pruned(text: str, how: Replacement, sequence: int, *, pictured: bool) -> str:
    """What session pruning leaves of a result, in OpenClaw's words
    (src/agents/pi-extensions/context-pruning/pruner.ts), and how to get it back."""
    reader = f" with {how.reader}" if how.reader else ""
    back = f"[expand sequence {sequence}{reader} to read it]"
    if not sequence:
        back = "[the caller has all of it]"
    if how.why is Gone.CLEARED:
        return f"{how.text}\n{back}"
    said = [text]
    if how.head + how.tail < len(text):
        tail = text[len(text) - how.tail :]
        note = (
            f"[Tool result trimmed: kept first {how.head} chars and last {how.tail} chars of"
            f" {len(text)} chars.]"
        )
        said = [f"{text[: how.head]}\n...\n{tail}\n", note]
    return "\n".join([*said, *[IMAGE_REMOVED] * pictured, back])


def _seen(how: Replacement, sequence: int) -> str:
    """What stands for a picture that was seen, and how to get it back."""
    reader = f" with {how.reader}" if how.reader else ""
    back = f"expand sequence {sequence}{reader} to see it" if sequence else "the caller has it"
    return f"{IMAGE_SEEN}\n[{back}]"


def _pictured(result: pb.ToolResultPart) -> bool:
    return any(part.HasField("image") for part in result.parts)


def _marker(text: str, how: Replacement, sequence: int) -> str:
    chars, reader = f"{len(text):,}", f" with {how.reader}" if how.reader else ""
    back = f"expand sequence {sequence}{reader} to read " if sequence else "the caller has "
    match how.why:
        case Gone.SUPERSEDED:
            return (
                f"the same was read again, see sequence {how.by}; {chars} characters are left out"
                f" here; {back}them]"
            )
        case Gone.OLD_IMAGE:
            return f"it is old; {back}it]"
        case Gone.OLD_ERROR:
            return f"it is old, {chars} characters; {back}it]"
    return f"{_line(how.tool)} — {chars} chars cleared; {back}them]\n{_preview(text)}"


def _line(tool: str) -> str:
    """A tool's name within a line of ours."""
    return " ".join(tool.split())[:MAX_TOOL_CHARS]


def _preview(text: str) -> str:
    if len(text) <= WHOLE_CHARS:
        return text
    return f"{text[:HEAD_CHARS]}\n...\n{text[-TAIL_CHARS:]}"
