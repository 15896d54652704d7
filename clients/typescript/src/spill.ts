import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";

import { type AfterTurnRequest, AfterTurnRequestSchema } from "./types.js";

/** A spill file that is not one, or was damaged. Move it away to go on without what it holds. */
export class SpillDamaged extends Error {}

/** The file that outlives a client: requests that could not be sent, each behind its length as a varint. */
export class Spill {
  private readonly file: number;

  constructor(private readonly path: string) {
    this.file = openSync(path, "a", 0o600);
  }

  /** What the file holds. A last record that was cut off is taken away. Raises SpillDamaged. */
  read(): AfterTurnRequest[] {
    const data = readFileSync(this.path);
    const requests: AfterTurnRequest[] = [];
    let position = 0;
    for (let found = record(data, 0); found !== undefined; found = record(data, position)) {
      try {
        requests.push(fromBinary(AfterTurnRequestSchema, data.subarray(found.start, found.end)));
      } catch {
        throw new SpillDamaged(`spill file ${this.path}: no request at byte ${position}`);
      }
      position = found.end;
    }
    ftruncateSync(this.file, position);
    return requests;
  }

  /** Adds a request. It is on the disk when this returns. */
  append(request: AfterTurnRequest): void {
    const record = new BinaryWriter().bytes(toBinary(AfterTurnRequestSchema, request)).finish();
    const whole = fstatSync(this.file).size;
    try {
      for (let written = 0; written < record.length; ) written += writeSync(this.file, record, written);
      fsyncSync(this.file);
    } catch (error) {
      // Behind half a record nothing could be read again.
      ftruncateSync(this.file, whole);
      throw error;
    }
  }

  /** Leaves the file empty. */
  clear(): void {
    ftruncateSync(this.file, 0);
  }

  /** Closes the file. What it holds stays. */
  close(): void {
    closeSync(this.file);
  }
}

/** Where the record at `position` begins behind its length, and where it ends. Undefined: it is not whole. */
function record(data: Uint8Array, position: number): { start: number; end: number } | undefined {
  let length = 0;
  for (let index = position; index < Math.min(position + 10, data.length); index++) {
    const byte = data[index] as number;
    length += (byte & 0x7f) * 2 ** (7 * (index - position));
    if (byte < 0x80) {
      const end = index + 1 + length;
      return end <= data.length ? { start: index + 1, end } : undefined;
    }
  }
  return undefined;
}
