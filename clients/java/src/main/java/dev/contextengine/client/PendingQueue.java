package dev.contextengine.client;

import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.SessionRef;
import io.grpc.Status;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** What could not be sent while the service was away, in order, within bounds. */
final class PendingQueue implements AutoCloseable {
    static final int MAX_MESSAGES = 10_000;
    static final long MAX_BYTES = 64L << 20;
    private static final int MAX_REJECTED = 1_000;

    private final int maxMessages;
    private final long maxBytes;
    private final SpillFile spill;
    private final List<AfterTurnRequest> entries = new ArrayList<>();
    private final Deque<Rejected> rejected = new ArrayDeque<>();
    private int messages;
    private long bytes;

    /** Begins with what the spill file holds, the limits notwithstanding. Null: no file. */
    PendingQueue(int maxMessages, long maxBytes, Path spillFile) {
        this.maxMessages = maxMessages;
        this.maxBytes = maxBytes;
        this.spill = spillFile == null ? null : SpillFile.open(spillFile, entries);
        for (AfterTurnRequest entry : entries) {
            messages += weight(entry);
            bytes += entry.getSerializedSize();
        }
    }

    /** Queues an entry. Throws QueueFull, and then changes nothing. */
    synchronized void add(AfterTurnRequest entry) {
        if (messages + weight(entry) > maxMessages || bytes + entry.getSerializedSize() > maxBytes) {
            String message = "%d messages of %d bytes wait for the service; %d and %d bytes are the limits"
                    .formatted(messages, bytes, maxMessages, maxBytes);
            throw Failure.of(Status.Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", message, null).typed();
        }
        if (spill != null) {
            try {
                spill.append(entry);
            } catch (UncheckedIOException failed) {
                // The agent goes on without its disk, too.
                String message = "the spill file cannot be written: " + failed.getCause().getMessage();
                throw Failure.of(Status.Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", message, failed).typed();
            }
        }
        entries.add(entry);
        messages += weight(entry);
        bytes += entry.getSerializedSize();
    }

    /** The sessions that have entries, the one with the oldest entry first. */
    synchronized List<SessionRef> sessions() {
        return entries.stream().map(AfterTurnRequest::getSession).distinct().toList();
    }

    /** The oldest entry of a session. Null: there is none. */
    synchronized AfterTurnRequest first(SessionRef session) {
        return entries.stream().filter(entry -> isOf(entry, session)).findFirst().orElse(null);
    }

    /** Takes out an entry that the service has answered. False: another call had sent it as well, and was quicker. */
    synchronized boolean sent(AfterTurnRequest entry) {
        for (int i = 0; i < entries.size(); i++) {
            if (entries.get(i) == entry) { // equal requests are not the same entry
                entries.remove(i);
                messages -= weight(entry);
                bytes -= entry.getSerializedSize();
                if (entries.isEmpty() && spill != null) {
                    spill.clear();
                }
                return true;
            }
        }
        return false;
    }

    /** Takes out an entry that was refused for good. Throws the error where sending it again may help. */
    synchronized void failed(AfterTurnRequest entry, ContextEngineException error) {
        if (!Failure.isForGood(error)) {
            throw error;
        }
        if (sent(entry)) {
            rejected.add(new Rejected(entry, error));
            if (rejected.size() > MAX_REJECTED) {
                rejected.removeFirst();
            }
        }
    }

    /** The last of what was refused for good, the newest last. */
    synchronized List<Rejected> rejected() {
        return List.copyOf(rejected);
    }

    /** How many messages wait, of a session or, where that is null, of all. */
    synchronized int count(SessionRef session) {
        return entries.stream().filter(entry -> isOf(entry, session)).mapToInt(PendingQueue::weight).sum();
    }

    private static boolean isOf(AfterTurnRequest entry, SessionRef session) {
        return session == null || entry.getSession().equals(session);
    }

    /** How many messages an entry counts as. */
    private static int weight(AfterTurnRequest entry) {
        return Math.max(1, entry.getMessagesCount());
    }

    @Override
    public synchronized void close() {
        if (spill != null) {
            spill.close();
        }
    }
}
