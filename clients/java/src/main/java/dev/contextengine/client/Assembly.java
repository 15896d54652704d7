package dev.contextengine.client;

import dev.contextengine.v1.AssembleResponse;
import dev.contextengine.v1.Item;
import dev.contextengine.v1.Message;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The context for one model call, whole.
 *
 * @param items the whole list, in order
 * @param response the reply as it came; its items may be only what follows the reused ones
 * @param degraded why the client made it by itself; empty where the service did
 */
public record Assembly(List<Item> items, AssembleResponse response, Optional<Degraded> degraded) {

    /**
     * What to send to the model.
     *
     * @return the messages of the items, in order
     */
    public List<Message> messages() {
        return items.stream().map(Item::getMessage).toList();
    }

    /** The assembly that a good reply makes of the one that is held; null: nothing is. */
    static Assembly extend(Assembly held, AssembleResponse reply) {
        int reused = reply.getCache().getReusedCount();
        int total = reply.getCache().getTotalCount();
        List<Item> before = held == null ? List.of() : held.items();
        if (reused < 0 || reused > before.size()) {
            throw new DeltaMismatchException("the reply reuses %d entries of a list of %d".formatted(reused, before.size()));
        }
        if (reused + reply.getItemsCount() != total) {
            throw new DeltaMismatchException("%d reused and %d new entries are not the %d announced"
                    .formatted(reused, reply.getItemsCount(), total));
        }
        List<Item> items = new ArrayList<>(total);
        items.addAll(before.subList(0, reused));
        items.addAll(reply.getItemsList());
        return new Assembly(List.copyOf(items), reply, Optional.empty());
    }
}
