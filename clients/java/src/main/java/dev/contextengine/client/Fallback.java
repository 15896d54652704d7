package dev.contextengine.client;

import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.AssembleResponse;
import dev.contextengine.v1.CacheReport;
import dev.contextengine.v1.Item;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.Role;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/** A valid context while the service is away: the last good assembly and what came later, whole atoms within the budget. Pure. */
public final class Fallback {
    /** The {@code outcome_reason} of what a client assembles by itself. */
    public static final String REASON = "CLIENT_FALLBACK";

    private Fallback() {}

    /**
     * The context for a request without the service.
     *
     * @param request the request
     * @param held the items of the last good assembly, whole
     * @param last its reply; null: there is none
     * @param later what was handed over since
     * @return a reply whose outcome is DEGRADED, or OVER_BUDGET where what may not go exceeds the budget
     */
    public static AssembleResponse makeUp(
            AssembleRequest request, List<Item> held, AssembleResponse last, List<Message> later) {
        long limit = Costs.room(request, last);
        List<Atom> kept = fitted(Atom.atomsOf(entriesOf(request, held, last, later)), limit);
        long total = kept.stream().mapToLong(Atom::cost).sum();
        AssembleResponse good = last == null ? AssembleResponse.getDefaultInstance() : last;
        AssembleResponse.Builder made = AssembleResponse.newBuilder()
                .setOutcome(total > limit
                        ? AssembleResponse.Outcome.OUTCOME_OVER_BUDGET
                        : AssembleResponse.Outcome.OUTCOME_DEGRADED)
                .setOutcomeReason(REASON)
                .setEstimatedTokens(total)
                .setSystemPromptAddition(good.getSystemPromptAddition())
                .setRevision(good.getRevision())
                .setEngineId(good.getEngineId());
        if (last != null) {
            made.setContextProjection(last.getContextProjection());
        }
        kept.forEach(atom -> atom.entries().forEach(entry -> made.addItems(entry.item())));
        return made.setCache(CacheReport.newBuilder().setTotalCount(made.getItemsCount())).build();
    }

    /** The list before anything is left out, each item with its cost. */
    private static List<Atom.Entry> entriesOf(
            AssembleRequest request, List<Item> held, AssembleResponse last, List<Message> later) {
        List<Atom.Entry> entries = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        List<Message> added = new ArrayList<>();
        if (request.hasLive()) {
            added.addAll(request.getLive().getMessagesList());
        } else {
            double given = last == null ? 0 : last.getBudget().getModelFactor();
            double factor = given == 0 ? 1 : given;
            for (Item item : held) {
                entries.add(new Atom.Entry(item, (long) Math.ceil(item.getTokens() * factor)));
                seen.add(item.getMessage().getId());
            }
            added.addAll(later);
            added.addAll(request.getIngestList());
        }
        for (Message message : added) {
            if (seen.add(message.getId()) || message.getId().isEmpty()) {
                entries.add(Atom.Entry.of(message));
            }
        }
        return entries;
    }

    /** The atoms that stay: the oldest go first, messages before summaries, those that may not go never. */
    private static List<Atom> fitted(List<Atom> atoms, long limit) {
        long total = atoms.stream().mapToLong(Atom::cost).sum();
        Set<Atom> fixed = fixedOf(atoms);
        Set<Atom> gone = new HashSet<>();
        for (boolean ours : new boolean[] {false, true}) {
            for (Atom atom : atoms) {
                if (total > limit && !fixed.contains(atom) && isOurs(atom.first()) == ours) {
                    gone.add(atom);
                    total -= atom.cost();
                }
            }
        }
        return atoms.stream().filter(Predicate.not(gone::contains)).toList();
    }

    /** The atoms that may not go. */
    private static Set<Atom> fixedOf(List<Atom> atoms) {
        Set<Atom> fixed = new HashSet<>();
        Atom asked = null;
        boolean leading = true;
        for (Atom atom : atoms) {
            Role role = atom.first().getRole();
            leading &= role == Role.ROLE_SYSTEM || role == Role.ROLE_DEVELOPER;
            if (leading || atom.entries().stream().anyMatch(entry -> isPinned(entry.message()))) {
                fixed.add(atom);
            }
            if (atom.entries().stream().anyMatch(entry -> isUsers(entry.message()))) {
                asked = atom;
            }
        }
        if (asked != null) {
            fixed.add(asked);
        }
        if (!atoms.isEmpty()) {
            fixed.add(atoms.get(atoms.size() - 1));
        }
        return fixed;
    }

    private static boolean isPinned(Message message) {
        return !message.getLabelsOrDefault("pinned", "false").equals("false");
    }

    private static boolean isUsers(Message message) {
        return message.getRole() == Role.ROLE_USER && !isOurs(message);
    }

    private static boolean isOurs(Message message) {
        return message.getId().startsWith(Atom.OURS);
    }
}
