import { create } from "@bufbuild/protobuf";

import { bound } from "./costs.js";
import { text } from "./messages.js";
import { type Item, ItemSchema, type Message, MessageSchema, type Part, Role, type ToolCallPart } from "./types.js";

/** How ids begin that belong to the service. */
export const OURS = "ce:";

/** An item and its cost in the model's tokens. */
export interface Entry {
  item: Item;
  cost: number;
}

/** Entries that stand or fall together: a call with its results, reasoning with what it produced. */
export class Atom {
  constructor(
    readonly entries: Entry[] = [],
    /** Calls that wait for their results. */
    public open: ToolCallPart[] = [],
  ) {}

  get cost(): number {
    return this.entries.reduce((sum, { cost }) => sum + cost, 0);
  }

  get messages(): Message[] {
    return this.entries.flatMap(({ item }) => item.message ?? []);
  }

  /** Gives the calls that are open a result that says there is none. */
  close(): void {
    const caller = this.messages.findLast((message) => callsOf(message).length > 0)?.id ?? "";
    for (const { callId, name } of this.open) {
      const value = { callId, name, parts: [text("No result was recorded.")], isError: true };
      const id = `${OURS}no-result:${caller}:${callId}`;
      const parts = [{ kind: { case: "toolResult" as const, value } }];
      const message = create(MessageSchema, { id, role: Role.TOOL, parts });
      const cost = bound(message);
      const origin = { kind: { case: "synthetic" as const, value: "no result was recorded" } };
      this.entries.push({ item: create(ItemSchema, { id, message, tokens: BigInt(cost), origin }), cost });
    }
    this.open = [];
  }
}

/**
 * The atoms of a list. Results without a call are left out, calls that were left get a made-up result; those of the last
 * atom stay open: they are pending.
 */
export function atomsOf(entries: readonly Entry[]): Atom[] {
  const atoms: Atom[] = [];
  for (let { item, cost } of entries) {
    const current = atoms.at(-1) ?? new Atom();
    let answered = 0;
    if (item.message && answers(item.message)) {
      [item, answered] = answering(item, current);
      if (!item.message?.parts.length) continue;
    }
    const { message } = item;
    const calls = message ? callsOf(message) : [];
    if (answered || (message?.role === Role.ASSISTANT && onlyReasoning(current.messages.at(-1)))) {
      current.entries.push({ item, cost });
      current.open.push(...calls);
    } else {
      current.close();
      atoms.push(new Atom([{ item, cost }], calls));
    }
  }
  return atoms;
}

function answers(message: Message): boolean {
  return message.role === Role.TOOL || message.parts.some(({ kind }) => kind.case === "toolResult");
}

/** The item without results that answer no open call of the atom; the others close theirs. And how many did. */
function answering(item: Item, atom: Atom): [Item, number] {
  const { native: _, ...message } = item.message as Message;
  let answered = 0;
  const kept = message.parts.filter(({ kind }: Part) => {
    if (kind.case !== "toolResult") return true;
    const index = atom.open.findIndex(({ callId }) => callId === kind.value.callId);
    if (index < 0) return false;
    atom.open.splice(index, 1);
    answered += 1;
    return true;
  });
  if (kept.length === message.parts.length) return [item, answered];
  return [{ ...item, message: { ...message, parts: kept } }, answered];
}

function onlyReasoning(message: Message | undefined): boolean {
  if (message?.role !== Role.ASSISTANT || !message.parts.length) return false;
  return message.parts.every(({ kind }) => kind.case === "reasoning");
}

function callsOf(message: Message): ToolCallPart[] {
  if (message.role !== Role.ASSISTANT) return [];
  return message.parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : []));
}
