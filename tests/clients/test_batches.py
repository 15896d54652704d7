"""Many messages as calls of a size that servers take, by the client for TypeScript. That of Python
is held in tests/unit/client/test_batching.py."""

from __future__ import annotations

import json

import pytest

from tests.clients.drivers import NAMED, ROOT
from tests.clients.node import ran

CLIENT = ROOT / "clients" / "typescript"
MIB = 1024 * 1024
SAID = """
import { batches, user } from "./dist/src/index.js";
const original = (bytes) => ({
  $typeName: "contextengine.v1.Native", format: "f", json: new Uint8Array(bytes),
});
const messages = JSON.parse(process.argv[1]).map(([text, native], at) => ({
  ...user("x".repeat(text)), id: `${at}`, native: native ? original(native) : undefined,
}));
const told = [...batches(messages)].map((some) => some.map((one) => [one.id, !!one.native]));
console.log(JSON.stringify(told));
"""

pytestmark = pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")


def _batches(*sizes: tuple[int, int]) -> list[list[tuple[int, bool]]]:
    """The batches of messages with so many bytes of text and of original: of each message its place
    and whether its original is there."""
    told = ran(CLIENT, "", "--input-type=module", "-e", SAID, json.dumps(sizes))
    return [[(int(id), native) for id, native in batch] for batch in json.loads(told)]


def test_a_batch_has_a_hundred_messages_or_a_mebibyte() -> None:
    made = _batches(*[(1, 0)] * 201, (MIB // 2, 0), (MIB // 2, 0), (3 * MIB, 0), (1, 0))
    assert [len(batch) for batch in made] == [100, 100, 2, 1, 1, 1]
    assert [at for batch in made for at, _ in batch] == list(range(205))


def test_a_message_that_is_too_large_with_its_original_goes_without() -> None:
    assert _batches((10 * MIB, 20 * MIB), (16 * MIB, 16 * MIB), (1, 0)) == [
        [(0, True)],
        [(1, False)],
        [(2, False)],
    ]
