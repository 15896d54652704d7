package dev.contextengine.client;

import dev.contextengine.v1.Message;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/** What handles on the same session remember together. Whoever reads or changes it holds its monitor. */
final class Remembered {
    /** What the service is told is held. Null: nothing. */
    Assembly held;
    /** The last good assembly, for contexts made without the service. Null: there is none. */
    Assembly last;
    /** What was handed over since. */
    final Deque<Message> later = new ArrayDeque<>();

    /** Keeps what was handed over since the last good assembly. */
    void handed(List<Message> messages) {
        later.addAll(messages);
        while (later.size() > PendingQueue.MAX_MESSAGES) {
            later.removeFirst();
        }
    }

    /** The session is not what the last good assembly showed. */
    void forget() {
        last = null;
        later.clear();
    }
}
