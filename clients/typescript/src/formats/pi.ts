import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { type Message, MessageSchema, type Part, Role, type UsageSchema } from "../types.js";
import { argumentsOf, decoded, opaque, part, said } from "./common.js";
import { compact, load, type Node, type Source } from "./json.js";

/** The name of the format of Pi and OpenClaw in `native`. */
export const PI = "pi";

const encoder = new TextEncoder();
/** The types of entries that a model sees. */
const SPOKEN = new Set(["message", "custom_message", "branch_summary"]);
/** Roles of the harness's own messages, some of which say what they say in other members. */
const OWN_ROLES = new Set(["custom", "bashExecution", "branchSummary", "compactionSummary"]);
/** What OpenClaw itself wrote down as a reply: one that it delivered, its answer to a command, what an aborted one had said. */
const OPENCLAW_MODELS = new Set<unknown>(["delivery-mirror", "gateway-injected"]);

/**
 * Messages of the entries of a session, or of messages as an agent holds them (`AgentMessage`), each keeping its original in
 * `native`, byte for byte where it is given as text. Entries that no model sees (the session's head, changes of the model,
 * labels) are passed over, and compactions. Of a session with branches, give the entries of one. Raises FormatError.
 */
export function fromPi(entries: readonly Source[]): Message[] {
  return entries.flatMap((source, index) => {
    const { node, native: json } = load(source, `entries[${index}]`);
    const type = node.value["type"] === undefined && "role" in node.value ? "" : node.required("type");
    if (type && !SPOKEN.has(type)) return [];
    return [create(MessageSchema, { ...fromEntry(node, type), native: { format: PI, json } })];
  });
}

type Init = Omit<MessageInitShape<typeof MessageSchema>, "$typeName">;

function fromEntry(entry: Node, type: string): Init {
  if (type === "custom_message") return own(entry, entry, "custom", contentOf(entry));
  if (type === "branch_summary") return own(entry, entry, "branchSummary", [said(entry.text("summary"))]);
  const node = type ? entry.node("message") : entry;
  if (!node) throw entry.error("message", "an object is needed");
  const role = node.required("role");
  if (OWN_ROLES.has(role) || isHidden(node)) return own(entry, node, role, ownContentOf(node, role));
  const common = { id: entry.text("id"), ...timeOf(entry, node) };
  const parts = contentOf(node);
  switch (role) {
    case "user":
      return { ...common, role: Role.USER, parts };
    case "assistant": {
      const usage = node.node("usage");
      return {
        ...common,
        role: Role.ASSISTANT,
        parts,
        provider: node.text("provider"),
        model: node.text("model"),
        api: node.text("api"),
        stopReason: node.text("stopReason"),
        ...(usage ? { usage: usageOf(usage) } : {}),
      };
    }
    case "toolResult":
      return { ...common, role: Role.TOOL, parts: [resultOf(node, parts)] };
  }
  return { ...common, role: Role.CUSTOM, customRole: role, parts };
}

/** A message of the harness's own. One that it shows to no model is labelled `excluded`. */
function own(entry: Node, node: Node, customRole: string, parts: Part[]): Init {
  const kind = node.text("customType");
  const labels = {
    ...(kind ? { custom_type: kind } : {}),
    ...(isHidden(node) ? { excluded: "true" } : {}),
  };
  return { id: entry.text("id"), role: Role.CUSTOM, customRole, parts, labels, ...timeOf(entry, node) };
}

/** Whether the harness keeps it for people to see, and shows it to no model. */
function isHidden({ value: { role, provider, model, excludeFromContext } }: Node): boolean {
  return excludeFromContext === true || (role === "assistant" && provider === "openclaw" && OPENCLAW_MODELS.has(model));
}

function ownContentOf(node: Node, role: string): Part[] {
  switch (role) {
    case "bashExecution":
      return [said(`$ ${node.text("command")}\n${node.text("output")}`)];
    case "branchSummary":
    case "compactionSummary":
      return [said(node.text("summary"))];
  }
  return contentOf(node);
}

function timeOf(entry: Node, node: Node): Pick<Init, "timestamp"> {
  const timestamp = node.time("timestamp") ?? entry.time("timestamp");
  return timestamp ? { timestamp } : {};
}

function resultOf(node: Node, parts: Part[]): Part {
  const details = node.value["details"] ?? undefined;
  const value = {
    callId: node.required("toolCallId"),
    name: node.text("toolName"),
    parts,
    isError: node.value["isError"] === true,
    ...(details === undefined ? {} : { detailsJson: compact(details) }),
  };
  return part({ case: "toolResult", value });
}

function contentOf(node: Node): Part[] {
  const content = node.value["content"] ?? [];
  if (typeof content === "string") return [said(content)];
  if (!Array.isArray(content)) throw node.error("content", "a string or a list of parts is needed");
  return node.nodes("content").map(partOf);
}

function partOf(node: Node): Part {
  const type = node.required("type");
  switch (type) {
    case "text":
      return said(node.text("text"), node.rest("type", "text"));
    case "thinking": {
      const value = { text: node.text("thinking"), signature: encoder.encode(node.text("thinkingSignature")) };
      return part({ case: "reasoning", value }, node.rest("type", "thinking", "thinkingSignature"));
    }
    case "toolCall": {
      const argumentsJson = argumentsOf(node.value["arguments"]);
      const value = { callId: node.required("id"), name: node.required("name"), argumentsJson };
      const made = part({ case: "toolCall", value }, node.rest("type", "id", "name", "arguments", "thoughtSignature"));
      return { ...made, thoughtSignature: encoder.encode(node.text("thoughtSignature")) };
    }
    case "image": {
      const value = { source: { case: "data" as const, value: decoded(node, "data") }, mimeType: node.text("mimeType") };
      return part({ case: "image", value }, node.rest("type", "data", "mimeType"));
    }
  }
  return opaque(PI, type, compact(node.value));
}

function usageOf(node: Node): MessageInitShape<typeof UsageSchema> {
  const cost = node.node("cost")?.amount("total");
  const numbers = {
    inputTokens: node.integer("input"),
    outputTokens: node.integer("output"),
    cacheReadTokens: node.integer("cacheRead"),
    cacheWriteTokens: node.integer("cacheWrite"),
    totalTokens: node.integer("totalTokens"),
    // Pi writes US dollars.
    costMicroUsd: cost === undefined ? undefined : BigInt(Math.round(cost * 1_000_000)),
  };
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
}
