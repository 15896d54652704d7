package dev.contextengine.client;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The replies of a stream, iterated once. Close it to leave the stream before its end:
 *
 * <pre>{@code
 * try (Replies<ExportResponse> rows = session.export()) {
 *     for (ExportResponse row : rows) { … }
 * }
 * }</pre>
 *
 * <p>Iterating throws {@link ContextEngineException} where the stream fails.
 *
 * @param <R> a reply
 */
public final class Replies<R> implements Iterable<R>, AutoCloseable {
    private final BlockingStream<?, R> stream;

    Replies(BlockingStream<?, R> stream) {
        this.stream = stream;
    }

    /** Waits for each reply. All iterators of a stream share it. */
    @Override
    public Iterator<R> iterator() {
        return new Iterator<>() {
            private R next;

            @Override
            public boolean hasNext() {
                if (next == null) {
                    next = stream.next();
                }
                return next != null;
            }

            @Override
            public R next() {
                if (!hasNext()) {
                    throw new NoSuchElementException("the stream has ended");
                }
                R reply = next;
                next = null;
                return reply;
            }
        };
    }

    /** Ends the stream; also from another thread than the one that iterates. */
    @Override
    public void close() {
        stream.close();
    }
}
