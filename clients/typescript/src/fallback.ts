import { create } from "@bufbuild/protobuf";

import { type Atom, atomsOf, type Entry, OURS } from "./atoms.js";
import { bound, room } from "./costs.js";
import {
  type AssembleRequest,
  type AssembleResponse,
  AssembleResponse_Outcome as Outcome,
  AssembleResponseSchema,
  ContextProjectionSchema,
  type Item,
  ItemSchema,
  type Message,
  Role,
} from "./types.js";

/** The `outcomeReason` of what a client assembles by itself. */
export const FALLBACK_REASON = "CLIENT_FALLBACK";

/**
 * The context for a request without the service: the items of the last good assembly, what was handed over later and what
 * the request brings, whole atoms within the budget. The outcome is DEGRADED, or OVER_BUDGET where what may not go exceeds
 * the budget.
 */
export function makeUp(
  request: AssembleRequest,
  held: readonly Item[] = [],
  last?: AssembleResponse,
  later: readonly Message[] = [],
): AssembleResponse {
  const limit = room(request, last);
  const kept = fitted(atomsOf(entriesOf(request, held, last, later)), limit);
  const items = kept.flatMap((atom) => atom.entries.map(({ item }) => item));
  const total = costOf(kept);
  return create(AssembleResponseSchema, {
    items,
    outcome: total > limit ? Outcome.OVER_BUDGET : Outcome.DEGRADED,
    outcomeReason: FALLBACK_REASON,
    estimatedTokens: BigInt(total),
    systemPromptAddition: last?.systemPromptAddition ?? "",
    ...(last ? { contextProjection: last.contextProjection ?? create(ContextProjectionSchema) } : {}),
    cache: { totalCount: items.length },
    revision: last?.revision ?? 0n,
    engineId: last?.engineId ?? "",
  });
}

/** The list before anything is left out, each item with its cost. */
function entriesOf(
  request: AssembleRequest,
  held: readonly Item[],
  last: AssembleResponse | undefined,
  later: readonly Message[],
): Entry[] {
  const added = request.live ? request.live.messages : [...later, ...request.ingest];
  const factor = last?.budget?.modelFactor || 1;
  const entries = (request.live ? [] : held).map((item) => ({ item, cost: Math.ceil(Number(item.tokens) * factor) }));
  const seen = new Set(entries.map(({ item }) => item.message?.id));
  for (const message of added) {
    if (message.id && seen.has(message.id)) continue;
    seen.add(message.id);
    const cost = bound(message);
    entries.push({ item: create(ItemSchema, { id: message.id, tokens: BigInt(cost), message }), cost });
  }
  return entries;
}

/** The atoms that stay: the oldest go first, messages before summaries, those that may not go never. */
function fitted(atoms: readonly Atom[], limit: number): Atom[] {
  let total = costOf(atoms);
  const fixed = fixedOf(atoms);
  const gone = new Set<Atom>();
  for (const ours of [false, true]) {
    for (const atom of atoms) {
      if (total <= limit || fixed.has(atom) || isOurs(atom.messages[0]) !== ours) continue;
      gone.add(atom);
      total -= atom.cost;
    }
  }
  return atoms.filter((atom) => !gone.has(atom));
}

/** The atoms that may not go. */
function fixedOf(atoms: readonly Atom[]): Set<Atom | undefined> {
  const instructs = ({ messages }: Atom) => messages[0]?.role === Role.SYSTEM || messages[0]?.role === Role.DEVELOPER;
  const others = atoms.findIndex((atom) => !instructs(atom));
  return new Set([
    atoms.at(-1),
    ...atoms.slice(0, others < 0 ? atoms.length : others),
    ...atoms.filter((atom) => atom.messages.some(({ labels }) => (labels["pinned"] ?? "false") !== "false")),
    atoms.findLast((atom) => atom.messages.some((message) => message.role === Role.USER && !isOurs(message))),
  ]);
}

function isOurs(message: Message | undefined): boolean {
  return message?.id.startsWith(OURS) ?? false;
}

function costOf(atoms: readonly Atom[]): number {
  return atoms.reduce((sum, atom) => sum + atom.cost, 0);
}
