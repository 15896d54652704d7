"""What a tool call reads: equal keys for one thing, whatever a harness calls the tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import ReadKey
from contextengine_server.wire.message import read_traits
from contextengine_server.wire.reads import (
    MAX_ARGUMENT_BYTES,
    MIN_SAME_CHARS,
    facts_of_result,
    read_key,
    read_path,
)


def key(tool: str, **arguments: Any) -> ReadKey | None:
    return read_key(tool, json.dumps(arguments).encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (key("read", path="a.py"), key("read_file", file_path="./a.py")),
        (key("Read", file_path="/w/a.py"), key("mcp__filesystem__read_text_file", path="/w//a.py")),
        (key("file_read", path="a.py", reason="to see"), key("fs.read", path="a.py", limit=None)),
        (key("str_replace_based_edit_tool", command="view", path="a"), key("view", path="a")),
        (key("bash", command="npm test"), key("exec", cmd="npm test ", timeout=5)),
        (key("shell", command=["ls", "-l"]), key("local_shell", command=["ls", "-l"])),
        (key("web_fetch", url="https://a.org/x/"), key("link_reader", uri="https://a.org/x")),
        (key("web_search", query="cats"), key("WebSearch", query="cats")),
        (key("web_search", query="Big  Cats"), key("brave_search", q=" big cats\n")),
    ],
)
def test_one_thing_has_one_key(one: ReadKey | None, other: ReadKey | None) -> None:
    assert one is not None
    assert one == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (key("read", path="a.py"), key("read", path="b.py")),
        (key("bash", command="npm test"), key("bash", command="npm test", cwd="/other")),
        (key("read", path="x"), key("bash", command="x")),
        (key("grep", pattern="x"), key("glob", pattern="x")),
        (key("grep", pattern="x"), key("grep", pattern="X")),
        (key("web_search", query="x", page=1), key("web_search", query="x", page=2)),
        (key("grep", pattern="x", path="a"), key("grep", pattern="x", path="b")),
        (key("web_search", query="x", id=2**70), key("web_search", query="x", id=2**70 + 1)),
    ],
)
def test_other_things_have_other_targets(one: ReadKey | None, other: ReadKey | None) -> None:
    assert one is not None
    assert other is not None
    assert one.target != other.target


@pytest.mark.parametrize(
    "arguments", [b'{"path": "a", "limit": NaN}', b'{"path": "a", "of": "\\ud800"}']
)
def test_what_only_a_lenient_parser_reads_has_its_key(arguments: bytes) -> None:
    whole, lenient = key("read", path="a"), read_key("read", arguments)
    assert whole is not None
    assert lenient is not None
    assert (lenient.target, bool(lenient.extent)) == (whole.target, True)


def test_a_key_is_what_it_was() -> None:
    """Stores keep the target of a file that was read, to show it again behind a summary."""
    one = key("read", path="src/naïve.py", offset=3)
    assert one == ReadKey(bytes.fromhex("51799ca42b1e85ee"), bytes.fromhex("06b4ab43e57906b6"))


def test_a_part_is_told_from_the_whole() -> None:
    whole, part, other = (
        key("read", path="a"),
        key("read", path="a", offset=1, limit=20),
        key("read", path="a", offset=21, limit=20),
    )
    assert whole is not None
    assert part is not None
    assert other is not None
    assert whole.extent == b""
    assert whole.target == part.target == other.target
    assert len({whole.extent, part.extent, other.extent}) == 3


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", b'{"path": "a"}'),
        ("edit", b'{"path": "a"}'),
        ("str_replace_editor", b'{"command": "str_replace", "path": "a"}'),
        ("read", b"{}"),
        ("read", b'{"path": ""}'),
        ("read", b"no json"),
        ("read", b'["a"]'),
        ("read", b'{"path": "a", "much": "' + b"x" * MAX_ARGUMENT_BYTES + b'"}'),
        ("", b'{"path": "a"}'),
        ("grep", b"[" * 30_000),
    ],
)
def test_what_reads_nothing_has_none(tool: str, arguments: bytes) -> None:
    assert read_key(tool, arguments) is None


@pytest.mark.parametrize("depth", [200, 253, 254, 900, 960, 990, 1_000, 1_023, 1_024, 30_000])
def test_no_depth_of_arguments_is_too_deep(depth: int) -> None:
    nested = b'{"path": "a", "of": ' + b"[" * depth + b"]" * depth + b"}"
    call = pb.Message(role=pb.ROLE_ASSISTANT)
    call.parts.add().tool_call.MergeFrom(pb.ToolCallPart(name="read", arguments_json=nested))
    traits = read_traits(call)
    assert len(traits.asked) == 1
    assert read_path("read", nested) == ("a" if read_key("read", nested) else "")


def test_a_path_that_is_no_text_is_none() -> None:
    halves = b'{"path": "a\\ud800.py"}'
    assert read_key("read", halves) is not None
    assert read_path("read", halves) == ""
    assert read_path("read", b'{"path": "\\ud83d\\ude00.py"}') == "😀.py"


def test_traits_tell_what_is_read_and_what_failed() -> None:
    call = pb.Message(role=pb.ROLE_ASSISTANT)
    for name in ("edit", "read"):
        part = pb.ToolCallPart(call_id=name, name=name, arguments_json=b'{"path": "a"}')
        call.parts.add().tool_call.MergeFrom(part)
    assert read_traits(call).reads == (None, key("read", path="a"))
    del call.parts[1]
    assert read_traits(call).reads == ()
    answer = pb.Message(role=pb.ROLE_TOOL)
    answer.parts.add().tool_result.MergeFrom(pb.ToolResultPart(call_id="a"))
    answer.parts.add().tool_result.MergeFrom(pb.ToolResultPart(call_id="b", is_error=True))
    assert read_traits(answer).failed == (1,)


def answering(*texts: str, image: bool = False) -> pb.ToolResultPart:
    result = pb.ToolResultPart(call_id="a", name="any")
    for text in texts:
        result.parts.add().text.text = text
    if image:
        result.parts.add().image.uri = "https://example.org/a.png"
    return result


def text_key(result: pb.ToolResultPart) -> bytes:
    return facts_of_result(result).text


def test_results_that_say_the_same_have_one_name() -> None:
    """From 200 characters on; not beside a picture, and not by where their parts end."""
    long = "字" * MIN_SAME_CHARS
    same = answering(long)
    same.call_id, same.name, same.is_error = "b", "other", True
    assert text_key(answering(long)) == text_key(same) != b""
    others = [answering(long + "."), answering(long[:100], long[100:]), answering("x" * 200)]
    assert len({text_key(one) for one in (same, *others)}) == 4
    assert text_key(answering(long[1:])) == text_key(answering(long, image=True)) == b""
