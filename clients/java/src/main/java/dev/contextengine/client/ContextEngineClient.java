package dev.contextengine.client;

import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.ContextEngineGrpc;
import dev.contextengine.v1.SessionRef;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.Deadline;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

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

    private ContextEngineClient(Transport transport, PendingQueue queue) {
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
    public static Builder builder(String target) {
        return new Builder(target);
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

    /** Sends what waits, of all sessions, the oldest first. */
    public void flush() {
        flush(null);
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
     * Sends what waits, of a session or, where that is null, of all. Calls need not wait for each other: an entry goes only after
     * the one before it was answered, and one that two calls send is stored once.
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

    /** What a client is set to. */
    public static final class Builder {
        // Longer than the five minutes within which a gRPC server without settings takes one ping.
        private static final Duration KEEPALIVE = Duration.ofSeconds(310);
        private static final int MAX_MESSAGE_BYTES = 64 << 20;

        private final String target;
        private final Map<String, Duration> timeouts = new HashMap<>();
        private String token = "";
        private ChannelCredentials credentials;
        private boolean insecure;
        private Supplier<Map<String, String>> metadata = Map::of;
        private int maxMessageBytes = MAX_MESSAGE_BYTES;
        private Duration keepalive = KEEPALIVE;
        private boolean fallback = true;
        private int maxQueuedMessages = PendingQueue.MAX_MESSAGES;
        private long maxQueuedBytes = PendingQueue.MAX_BYTES;
        private Path spillFile;
        private Consumer<ManagedChannelBuilder<?>> channel = builder -> {};

        private Builder(String target) {
            this.target = target;
        }

        /**
         * Sends a bearer token. It goes unencrypted only to this machine, unless {@link #insecure} is set.
         *
         * @param token the token; empty: none
         * @return this
         */
        public Builder token(String token) {
            this.token = token;
            return this;
        }

        /**
         * Encrypts with the system's root certificates.
         *
         * @return this
         */
        public Builder tls() {
            return credentials(TlsChannelCredentials.create());
        }

        /**
         * Encrypts with root certificates of one's own.
         *
         * @param pem a file of certificates
         * @return this
         */
        public Builder rootCertificates(Path pem) {
            try {
                return credentials(TlsChannelCredentials.newBuilder().trustManager(pem.toFile()).build());
            } catch (IOException error) {
                throw new UncheckedIOException("root certificates " + pem + ": " + error.getMessage(), error);
            }
        }

        /**
         * Sets gRPC's own credentials, for mTLS say.
         *
         * @param credentials in place of those set before
         * @return this
         */
        public Builder credentials(ChannelCredentials credentials) {
            this.credentials = credentials;
            return this;
        }

        /**
         * Lets the token travel unencrypted to another machine.
         *
         * @return this
         */
        public Builder insecure() {
            this.insecure = true;
            return this;
        }

        /**
         * Sets the deadline of an rpc.
         *
         * @param rpc its name, {@code Service.Rpc}
         * @param timeout how long a call may take with all its retries; zero: for ever
         * @return this
         */
        public Builder timeout(String rpc, Duration timeout) {
            timeouts.put(rpc, timeout);
            return this;
        }

        /**
         * Sets what is called before every rpc.
         *
         * @param metadata answers metadata to send along; a {@code traceparent} among it wins over the current span
         * @return this
         */
        public Builder metadata(Supplier<Map<String, String>> metadata) {
            this.metadata = metadata;
            return this;
        }

        /**
         * Sets the largest request and reply.
         *
         * @param bytes 64 MiB by default
         * @return this
         */
        public Builder maxMessageBytes(int bytes) {
            this.maxMessageBytes = bytes;
            return this;
        }

        /**
         * Sets the time between pings on an idle connection. A server takes one every five minutes.
         *
         * @param every 310 seconds by default
         * @return this
         */
        public Builder keepalive(Duration every) {
            this.keepalive = every;
            return this;
        }

        /**
         * Says what session handles do while the service is away.
         *
         * @param fallback true, the default, bears it; false throws, and nothing is queued
         * @return this
         */
        public Builder fallback(boolean fallback) {
            this.fallback = fallback;
            return this;
        }

        /**
         * Sets the most messages that wait for the service to come back.
         *
         * @param messages 10,000 by default
         * @return this
         */
        public Builder maxQueuedMessages(int messages) {
            this.maxQueuedMessages = messages;
            return this;
        }

        /**
         * Sets the most bytes that wait for the service to come back.
         *
         * @param bytes 64 MiB by default
         * @return this
         */
        public Builder maxQueuedBytes(long bytes) {
            this.maxQueuedBytes = bytes;
            return this;
        }

        /**
         * Names a file that outlives this process with what waits. One client at a time.
         *
         * @param path the file; it need not exist
         * @return this
         */
        public Builder spillFile(Path path) {
            this.spillFile = path;
            return this;
        }

        /**
         * Sets gRPC's own options; they win over those set here.
         *
         * @param channel called with the channel's builder
         * @return this
         */
        public Builder channel(Consumer<ManagedChannelBuilder<?>> channel) {
            this.channel = channel;
            return this;
        }

        /**
         * Makes the client. Nothing is sent.
         *
         * @return the client
         * @throws IllegalArgumentException for settings that cannot be, and for a damaged spill file
         * @throws UncheckedIOException where the spill file cannot be read or written
         */
        public ContextEngineClient build() {
            Map<String, Duration> deadlines = Calls.timeouts(timeouts);
            if (!token.isEmpty() && credentials == null && !insecure && !Calls.isLoopback(target)) {
                throw new IllegalArgumentException("the token would travel unencrypted to " + target
                        + ": set tls or credentials, or insecure where the network is trusted");
            }
            ManagedChannelBuilder<?> builder = Grpc.newChannelBuilder(
                            target, credentials == null ? InsecureChannelCredentials.create() : credentials)
                    .maxInboundMessageSize(maxMessageBytes)
                    // What is too large to be held is not sent again.
                    .perRpcBufferLimit(maxMessageBytes)
                    .retryBufferSize(2L * maxMessageBytes)
                    .keepAliveTime(keepalive.toNanos(), TimeUnit.NANOSECONDS)
                    .defaultServiceConfig(Calls.serviceConfig());
            channel.accept(builder);
            PendingQueue queue = fallback ? new PendingQueue(maxQueuedMessages, maxQueuedBytes, spillFile) : null;
            if (fallback) {
                // Java reads classes when they are first used: here, and not when a deadline has just passed.
                Fallback.makeUp(AssembleRequest.newBuilder().addIngest(Messages.user("")).build(), List.of(), null, List.of());
                Failure.of(Status.Code.DEADLINE_EXCEEDED, "", "", null).typed();
            }
            Outgoing outgoing = new Outgoing(token, deadlines, metadata, maxMessageBytes);
            return new ContextEngineClient(new Transport(builder.build(), deadlines, outgoing), queue);
        }
    }
}
