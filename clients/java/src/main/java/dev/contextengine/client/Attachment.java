package dev.contextengine.client;

import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.AttachResponse;
import java.util.Iterator;

/**
 * A model lent to the server: iterate over what the server says, send what the harness says. One thread may iterate while others
 * send. Work has a lease of its own: after a broken stream attach again, results of what is in hand are still taken.
 * {@link ContextEngineClient#lend} does all of that.
 */
public final class Attachment implements Iterable<AttachResponse>, AutoCloseable {
    private final BlockingStream<AttachRequest, AttachResponse> stream;
    private final Replies<AttachResponse> replies;

    Attachment(BlockingStream<AttachRequest, AttachResponse> stream, AttachRequest.Hello hello) {
        this.stream = stream;
        this.replies = new Replies<>(stream);
        stream.send(AttachRequest.newBuilder().setHello(hello).build());
    }

    /**
     * Sends the result of a job.
     *
     * @param completion the result, with the ids of its job and lease
     * @return false where the stream has ended; iterating says how
     */
    public boolean send(AttachRequest.Completion completion) {
        return stream.send(AttachRequest.newBuilder().setCompletion(completion).build());
    }

    /**
     * Extends a lease.
     *
     * @param lease the ids of the job and its lease
     * @return false where the stream has ended; iterating says how
     */
    public boolean send(AttachRequest.KeepLease lease) {
        return stream.send(AttachRequest.newBuilder().setKeepLease(lease).build());
    }

    /** Says that no more comes from the harness; the server then ends the stream. */
    public void finish() {
        stream.finish();
    }

    /** Waits for each thing that the server says. Throws {@link ContextEngineException} where the stream fails. */
    @Override
    public Iterator<AttachResponse> iterator() {
        return replies.iterator();
    }

    /** Ends the stream. */
    @Override
    public void close() {
        replies.close();
    }
}
