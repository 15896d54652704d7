package dev.contextengine.client;

import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.ContextEngineGrpc;
import dev.contextengine.v1.SessionRef;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.Deadline;
import java.util.List;

/**
 * A client of one server. Connects at the first call. Safe to share between threads; close it when done.
 *
 * <p>Calls block. A deadline or a cancellation of the current {@link io.grpc.Context} holds for them too, and so does the
 * interruption of their thread.
 */
public final class ContextEngineClient implements AutoCloseable {
    /** Where a server listens that was started without settings. */
    public static final String DEFAULT_TARGET = "127.0.0.1:50051";

    private final Transport transport;
    private final PendingQueue queue;

    ContextEngineClient(Transport transport, PendingQueue queue) {
        this.transport = transport;
        this.queue = queue;
    }

    /**
     * A client without settings.
     *
     * @param target where the server is, {@code host:port} or any gRPC target
     * @return the client
     */
    public static ContextEngineClient create(String target) {
        return builder(target).build();
    }

    /**
     * A client with settings.
     *
     * @param target where the server is, {@code host:port} or any gRPC target
     * @return what to set, and then build
     */
    public static ClientBuilder builder(String target) {
        return new ClientBuilder(target);
    }

    /**
     * A handle on one session, which need not exist yet. Nothing is sent.
     *
     * @param agentId the agent
     * @param sessionId the session
     * @return the handle
     */
    public Session session(String agentId, String sessionId) {
        return session(SessionRef.newBuilder().setAgentId(agentId).setSessionId(sessionId).build());
    }

    /**
     * A handle on one session, which need not exist yet. Nothing is sent.
     *
     * @param ref names the session, by its id, its key or both
     * @return the handle
     */
    public Session session(SessionRef ref) {
        return new Session(this, ref);
    }

    /** {@return the rpcs of the life of sessions} */
    public ContextEngineRpcs contextEngine() {
        return new ContextEngineRpcs(transport);
    }

    /** {@return the rpcs that list, move, erase and watch sessions} */
    public SessionsRpcs sessions() {
        return new SessionsRpcs(transport);
    }

    /** {@return the rpcs about the engines that the server hosts} */
    public EnginesRpcs engines() {
        return new EnginesRpcs(transport);
    }

    /** {@return the rpcs that find and bring back what an assembly does not show} */
    public RecallRpcs recall() {
        return new RecallRpcs(transport);
    }

    /** {@return the rpc that renders contexts for harnesses and providers} */
    public ProjectionRpcs projection() {
        return new ProjectionRpcs(transport);
    }

    /** {@return the rpc that lends a model to the server} */
    public RuntimeRpcs runtime() {
        return new RuntimeRpcs(transport);
    }

    /**
     * Lends a model to the server, in threads, until the answer is closed. Each job is given to {@code model}, as many at once as
     * the server hands out. What it throws is told to the server as a failure that may pass, and logged here. A stream that
     * breaks is opened anew, and answers that were not received go out again.
     *
     * @param hello introduces the harness
     * @param model answers a job
     * @return what ends the lending, and tells how it ended
     */
    public Lending lend(AttachRequest.Hello hello, LentModel model) {
        return new Lending(this, hello, model);
    }

    /**
     * The channel, for gRPC's own stubs: asynchronous ones, say. Their calls get deadlines, metadata and gRPC's retries, but no
     * ids and no typed errors.
     *
     * @return the channel
     */
    public Channel channel() {
        return transport.channel();
    }

    /** {@return how many messages wait for the service to come back} */
    public int pending() {
        return pending(null);
    }

    /**
     * What had waited and was then refused for what it is.
     *
     * @return the last thousand, the newest last
     */
    public List<Rejected> rejected() {
        return queue == null ? List.of() : queue.rejected();
    }

    /**
     * Sends what waits, of all sessions, the oldest first. Where some of it cannot be sent it goes on with the other sessions, all
     * within one deadline, and throws the first error.
     */
    public void flush() {
        if (queue == null) {
            return;
        }
        Deadline deadline = transport.deadline(ContextEngineGrpc.getAfterTurnMethod());
        ContextEngineException first = null;
        for (SessionRef session : queue.sessions()) {
            try {
                flush(session, deadline);
            } catch (ContextEngineException error) {
                first = first == null ? error : first;
                boolean isCancelled = Context.current().isCancelled() || Thread.currentThread().isInterrupted();
                if (isCancelled || deadline != null && deadline.isExpired()) {
                    break;
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }

    /** Ends calls that run. What waits to be sent stays in the spill file, if there is one. */
    @Override
    public void close() {
        transport.close();
        if (queue != null) {
            queue.close();
        }
    }

    Transport transport() {
        return transport;
    }

    /** What waits for the service to come back. Null: nothing ever does. */
    PendingQueue queue() {
        return queue;
    }

    int pending(SessionRef session) {
        return queue == null ? 0 : queue.count(session);
    }

    void flush(SessionRef session) {
        flush(session, transport.deadline(ContextEngineGrpc.getAfterTurnMethod()));
    }

    /**
     * Sends what waits of a session. Calls need not wait for each other: an entry goes only after the one before it was answered,
     * and one that two calls send is stored once.
     */
    void flush(SessionRef session, Deadline deadline) {
        if (queue == null) {
            return;
        }
        AfterTurnRequest entry;
        while ((entry = queue.first(session)) != null) {
            try {
                transport.send(ContextEngineGrpc.getAfterTurnMethod(), entry, deadline);
                queue.sent(entry);
            } catch (ContextEngineException error) {
                queue.failed(entry, error);
            }
        }
    }
}
