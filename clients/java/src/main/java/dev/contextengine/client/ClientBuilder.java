package dev.contextengine.client;

import dev.contextengine.v1.AssembleRequest;
import io.grpc.ChannelCredentials;
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

/** What a client is set to. Made by {@link ContextEngineClient#builder}. */
public final class ClientBuilder {
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
    private Duration retryFor = Calls.RETRY_FOR;
    private boolean fallback = true;
    private boolean breaker;
    private int maxQueuedMessages = PendingQueue.MAX_MESSAGES;
    private long maxQueuedBytes = PendingQueue.MAX_BYTES;
    private Path spillFile;
    private Consumer<ManagedChannelBuilder<?>> channel = builder -> {};

    ClientBuilder(String target) {
        this.target = target;
    }

    /**
     * Sends a bearer token. It goes unencrypted only to this machine, unless {@link #insecure} is set.
     *
     * @param token the token; empty: none
     * @return this
     */
    public ClientBuilder token(String token) {
        this.token = token;
        return this;
    }

    /**
     * Encrypts with the system's root certificates.
     *
     * @return this
     */
    public ClientBuilder tls() {
        return credentials(TlsChannelCredentials.create());
    }

    /**
     * Encrypts with root certificates of one's own.
     *
     * @param pem a file of certificates
     * @return this
     */
    public ClientBuilder rootCertificates(Path pem) {
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
    public ClientBuilder credentials(ChannelCredentials credentials) {
        this.credentials = credentials;
        return this;
    }

    /**
     * Lets the token travel unencrypted to another machine.
     *
     * @return this
     */
    public ClientBuilder insecure() {
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
    public ClientBuilder timeout(String rpc, Duration timeout) {
        timeouts.put(rpc, timeout);
        return this;
    }

    /**
     * Sets what is called before every rpc.
     *
     * @param metadata answers metadata to send along; a {@code traceparent} among it wins over the current span
     * @return this
     */
    public ClientBuilder metadata(Supplier<Map<String, String>> metadata) {
        this.metadata = metadata;
        return this;
    }

    /**
     * Sets the largest request and reply.
     *
     * @param bytes 64 MiB by default
     * @return this
     */
    public ClientBuilder maxMessageBytes(int bytes) {
        this.maxMessageBytes = bytes;
        return this;
    }

    /**
     * Sets the time between pings on an idle connection. A server takes one every five minutes.
     *
     * @param every 310 seconds by default
     * @return this
     */
    public ClientBuilder keepalive(Duration every) {
        this.keepalive = every;
        return this;
    }

    /**
     * Sets how long unary calls are sent again while the service is away (UNAVAILABLE), counted for all of them from when it
     * went, never beyond a deadline.
     *
     * @param patience 10 seconds by default; zero: they are not
     * @return this
     */
    public ClientBuilder retryFor(Duration patience) {
        if (patience.isNegative()) {
            throw new IllegalArgumentException("retryFor is " + patience + ": it must be 0 or above");
        }
        this.retryFor = patience;
        return this;
    }

    /**
     * Says what session handles do while the service is away.
     *
     * @param fallback true, the default, bears it; false throws, and nothing is queued
     * @return this
     */
    public ClientBuilder fallback(boolean fallback) {
        this.fallback = fallback;
        return this;
    }

    /**
     * Says whether a service that is dead or hung is waited for once: each further call waits 50 ms at most for it and fails as
     * that one did, until the service answers a question that goes on beside them (grpc.health.v1). Where calls hang all the same, it
     * is asked the later each time, after a minute at most.
     *
     * @param breaker false by default
     * @return this
     */
    public ClientBuilder breaker(boolean breaker) {
        this.breaker = breaker;
        return this;
    }

    /**
     * Sets the most messages that wait for the service to come back.
     *
     * @param messages 10,000 by default
     * @return this
     */
    public ClientBuilder maxQueuedMessages(int messages) {
        this.maxQueuedMessages = messages;
        return this;
    }

    /**
     * Sets the most bytes that wait for the service to come back.
     *
     * @param bytes 64 MiB by default
     * @return this
     */
    public ClientBuilder maxQueuedBytes(long bytes) {
        this.maxQueuedBytes = bytes;
        return this;
    }

    /**
     * Names a file that outlives this process with what waits. One client at a time.
     *
     * @param path the file; it need not exist
     * @return this
     */
    public ClientBuilder spillFile(Path path) {
        this.spillFile = path;
        return this;
    }

    /**
     * Sets gRPC's own options; they win over those set here.
     *
     * @param channel called with the channel's builder
     * @return this
     */
    public ClientBuilder channel(Consumer<ManagedChannelBuilder<?>> channel) {
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
        return new ContextEngineClient(new Transport(builder.build(), deadlines, retryFor, outgoing, breaker), queue);
    }
}
