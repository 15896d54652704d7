import { fromJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, TimestampSchema } from "@bufbuild/protobuf/wkt";

/** JSON that is not of the format it should be. The text names the place and what would be right there. */
export class FormatError extends Error {}

/** A JSON object, or its text. Of text the very bytes are kept. */
export type Source = Json | string | Uint8Array;
export type Json = { [key: string]: unknown };

const encoder = new TextEncoder();

/** A JSON object and where it stands. */
export class Node {
  constructor(
    readonly value: Json,
    readonly path: string,
  ) {}

  error(key: string, wanted: string): FormatError {
    return new FormatError(`${this.path}.${key}: ${wanted}`);
  }

  /** A string. Empty where it is absent or null. */
  text(key: string): string {
    const value = this.value[key] ?? "";
    if (typeof value !== "string") throw this.error(key, "a string is needed");
    return storable(value);
  }

  /** A string that is not empty. */
  required(key: string): string {
    const text = this.text(key);
    if (!text) throw this.error(key, "a string is needed");
    return text;
  }

  /** A whole number. Undefined where it is absent or null. */
  integer(key: string): bigint | undefined {
    const value = this.value[key] ?? undefined;
    if (value === undefined) return undefined;
    if (!Number.isSafeInteger(value)) throw this.error(key, "a whole number is needed");
    return BigInt(value as number);
  }

  /** A finite number. Undefined where it is absent or null. */
  amount(key: string): number | undefined {
    const value = this.value[key] ?? undefined;
    if (value !== undefined && !Number.isFinite(value)) throw this.error(key, "a number is needed");
    return value as number | undefined;
  }

  /** A time: milliseconds since 1970, or RFC 3339. Undefined where it is absent or null. */
  time(key: string): Timestamp | undefined {
    const value = this.value[key] ?? undefined;
    if (value === undefined) return undefined;
    try {
      if (typeof value === "string") return fromJson(TimestampSchema, value);
      if (Number.isSafeInteger(value)) return timestampFromMs(value as number);
    } catch {
      // Said below.
    }
    throw this.error(key, "milliseconds since 1970 or an RFC 3339 time is needed");
  }

  /** An object. Undefined where it is absent or null. */
  node(key: string): Node | undefined {
    const value = this.value[key] ?? undefined;
    if (value === undefined) return undefined;
    if (!isObject(value)) throw this.error(key, "an object is needed");
    return new Node(value, `${this.path}.${key}`);
  }

  /** A list of objects. Empty where it is absent or null. */
  nodes(key: string): Node[] {
    const value = this.value[key] ?? [];
    if (!Array.isArray(value) || !value.every(isObject)) throw this.error(key, "a list of objects is needed");
    return value.map((item, index) => new Node(item, `${this.path}.${key}[${index}]`));
  }

  /** What else the object holds, as JSON. Empty: nothing. */
  rest(...known: string[]): Uint8Array {
    const others = Object.entries(this.value).filter(([key]) => !known.includes(key));
    return others.length ? compact(Object.fromEntries(others)) : new Uint8Array();
  }
}

/** The object, and its bytes: the very ones where text was given. */
export function load(source: Source, path: string): { node: Node; native: Uint8Array } {
  if (typeof source !== "string" && !(source instanceof Uint8Array)) {
    return { node: new Node(source, path), native: compact(source) };
  }
  const value = parse(source, path);
  if (!isObject(value)) throw new FormatError(`${path}: an object is needed`);
  return { node: new Node(value, path), native: typeof source === "string" ? encoder.encode(source) : source };
}

/** The value of JSON text. */
export function parse(source: string | Uint8Array, path: string): unknown {
  try {
    return JSON.parse(typeof source === "string" ? source : Buffer.from(source).toString());
  } catch (error) {
    throw new FormatError(`${path}: not JSON: ${String(error)}`);
  }
}

/** A value as compact JSON. Lone surrogates, which UTF-8 cannot say, are escaped. */
export function compact(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** The members of a JSON object in bytes. None where it is no object. */
export function membersOf(bytes: Uint8Array): Json {
  if (!bytes.length) return {};
  const value = parse(bytes, "provider_metadata_json");
  return isObject(value) ? value : {};
}

/** U+FFFD for lone surrogates, which JSON can escape and UTF-8 cannot say. The native form has them. */
export function storable(text: string): string {
  return Buffer.from(text).toString();
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Text of bytes, with U+FFFD for what is no UTF-8. */
export function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

/** Bytes of base64. Undefined: it is none. */
export function base64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? new Uint8Array(bytes) : undefined;
}
