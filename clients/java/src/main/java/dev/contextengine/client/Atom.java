package dev.contextengine.client;

import dev.contextengine.v1.Item;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.Origin;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.Role;
import dev.contextengine.v1.ToolCallPart;
import dev.contextengine.v1.ToolResultPart;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * Entries of a list that stand or fall together: a tool call with its results, reasoning with what it produced. What may not
 * stand alone is left out or made whole.
 */
final class Atom {
    /** How ids begin that belong to the service. */
    static final String OURS = "ce:";

    private static final String NO_RESULT = "No result was recorded.";

    private final List<Entry> entries = new ArrayList<>();
    /** Calls that wait for their results. */
    private final List<ToolCallPart> open = new ArrayList<>();

    /** An item and its cost in the model's tokens. */
    record Entry(Item item, long cost) {
        /** A message that the service has not counted. */
        static Entry of(Message message) {
            long cost = Costs.bound(message);
            return new Entry(Item.newBuilder().setId(message.getId()).setTokens(cost).setMessage(message).build(), cost);
        }

        Message message() {
            return item.getMessage();
        }
    }

    /** The atoms of a list. Calls of the last stay open: they are pending. */
    static List<Atom> atomsOf(List<Entry> entries) {
        List<Atom> atoms = new ArrayList<>();
        Atom current = new Atom();
        for (Entry entry : entries) {
            Entry next = entry;
            int waiting = current.open.size();
            if (answers(entry.message())) {
                next = current.answeredBy(entry);
                if (next.message().getPartsCount() == 0) {
                    continue;
                }
            }
            boolean joins = current.open.size() < waiting
                    || next.message().getRole() == Role.ROLE_ASSISTANT && current.endsInReasoning();
            if (!joins) {
                current.close();
                current = new Atom();
                atoms.add(current);
            }
            current.entries.add(next);
            current.open.addAll(callsOf(next.message()));
        }
        return atoms;
    }

    List<Entry> entries() {
        return entries;
    }

    long cost() {
        return entries.stream().mapToLong(Entry::cost).sum();
    }

    Message first() {
        return entries.get(0).message();
    }

    private static boolean answers(Message message) {
        return message.getRole() == Role.ROLE_TOOL || message.getPartsList().stream().anyMatch(Part::hasToolResult);
    }

    /** The entry without results that answer no open call; the others close theirs. */
    private Entry answeredBy(Entry entry) {
        List<Part> kept = new ArrayList<>();
        for (Part part : entry.message().getPartsList()) {
            if (!part.hasToolResult() || closes(part.getToolResult().getCallId())) {
                kept.add(part);
            }
        }
        if (kept.size() == entry.message().getPartsCount()) {
            return entry;
        }
        Item.Builder copy = entry.item().toBuilder();
        copy.getMessageBuilder().clearNative().clearParts().addAllParts(kept);
        return new Entry(copy.build(), entry.cost());
    }

    /** Of calls with the same id each wants its own result. */
    private boolean closes(String callId) {
        for (Iterator<ToolCallPart> calls = open.iterator(); calls.hasNext(); ) {
            if (calls.next().getCallId().equals(callId)) {
                calls.remove();
                return true;
            }
        }
        return false;
    }

    private boolean endsInReasoning() {
        if (entries.isEmpty()) {
            return false;
        }
        Message last = entries.get(entries.size() - 1).message();
        return last.getRole() == Role.ROLE_ASSISTANT
                && last.getPartsCount() > 0
                && last.getPartsList().stream().allMatch(Part::hasReasoning);
    }

    private static List<ToolCallPart> callsOf(Message message) {
        if (message.getRole() != Role.ROLE_ASSISTANT) {
            return List.of();
        }
        return message.getPartsList().stream().filter(Part::hasToolCall).map(Part::getToolCall).toList();
    }

    /** Gives the calls that are open a result that says there is none. */
    private void close() {
        String caller = "";
        for (Entry entry : entries) {
            caller = callsOf(entry.message()).isEmpty() ? caller : entry.message().getId();
        }
        for (ToolCallPart call : open) {
            ToolResultPart result = ToolResultPart.newBuilder()
                    .setCallId(call.getCallId())
                    .setName(call.getName())
                    .setIsError(true)
                    .addParts(Messages.text(NO_RESULT))
                    .build();
            Entry made = Entry.of(Message.newBuilder()
                    .setId(OURS + "no-result:" + caller + ":" + call.getCallId())
                    .setRole(Role.ROLE_TOOL)
                    .addParts(Part.newBuilder().setToolResult(result))
                    .build());
            Origin origin = Origin.newBuilder().setSynthetic("no result was recorded").build();
            entries.add(new Entry(made.item().toBuilder().setOrigin(origin).build(), made.cost()));
        }
        open.clear();
    }
}
