/** When messages of a list without times were made: each when it was handed over first. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Message } from "@contextengine/client/types";
import type { ModelMessage } from "ai";

import { kept, keyOf } from "../src/list.js";
import { Sightings } from "../src/times.js";

const said = (...words: string[]): ModelMessage[] =>
  words.map((content) => ({ role: content.startsWith("answer") ? "assistant" : "user", content }));

function times(seen: Sightings, list: Message[], ms: number): (number | undefined)[] {
  seen.time(list, list.map(keyOf), timestampFromMs(ms));
  return list.map(({ timestamp }) => timestamp && timestampMs(timestamp));
}

test("what is new has the time of now, what was seen before that of then, however often it comes", () => {
  const seen = new Sightings();
  assert.deepEqual(times(seen, kept(said("one")), 1), [1]);
  assert.deepEqual(times(seen, kept(said("one", "answer", "two")), 2), [1, 2, 2]);
  assert.deepEqual(times(seen, kept(said("one", "answer", "two")), 3), [1, 2, 2]);
  assert.deepEqual(times(seen, kept(said("one", "answer", "edited")), 4), [1, 2, 4]);
});

test("a long list that is seen for the first time is of nobody knows when, but for what is not answered yet", () => {
  const seen = new Sightings();
  assert.deepEqual(times(seen, kept(said("one", "answer", "two")), 1), [undefined, undefined, 1]);
  assert.deepEqual(times(seen, kept(said("one", "answer", "two", "answer")), 2), [undefined, undefined, 1, 2]);
});

test("a time that a message has is left", () => {
  const [one] = kept(said("one"));
  assert.ok(one);
  one.timestamp = timestampFromMs(7);
  assert.deepEqual(times(new Sightings(), [one], 1), [7]);
});
