package dev.contextengine.client;

import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The rpcs as they are sent: with ids, a deadline, retries and typed errors. */
final class Transport implements AutoCloseable {
    private static final Status CLOSED = Status.CANCELLED.withDescription("the client was closed");

    private final ManagedChannel managed;
    private final Channel channel;
    private final Map<String, Duration> timeouts;
    private final Duration retryFor;
    private final Absence absence = new Absence();
    private final CountDownLatch closed = new CountDownLatch(1);
    /** Null: each call waits for the service by itself. */
    private final Breaker breaker;

    Transport(
            ManagedChannel channel,
            Map<String, Duration> timeouts,
            Duration retryFor,
            Outgoing outgoing,
            boolean hasBreaker) {
        this.managed = channel;
        this.breaker = hasBreaker ? new Breaker() : null;
        this.timeouts = timeouts;
        this.retryFor = retryFor;
        this.channel = ClientInterceptors.intercept(channel, outgoing, this::ending);
        Reconnecting.watch(channel);
    }

    /** The channel, whose calls get deadlines and metadata. */
    Channel channel() {
        return channel;
    }

    /** When a call that begins now must end: by its timeout, or by the current context where that is sooner. Null: never. */
    Deadline deadline(MethodDescriptor<?, ?> method) {
        Duration timeout = timeouts.get(Calls.nameOf(method));
        Deadline outer = Context.current().getDeadline();
        if (timeout.isZero()) {
            return outer;
        }
        Deadline own = Deadline.after(timeout.toNanos(), TimeUnit.NANOSECONDS);
        return outer == null ? own : own.minimum(outer);
    }

    /** The request as it is sent: with its ids, and with texts that are all Unicode. */
    @SuppressWarnings("unchecked")
    static <Q extends Message> Q ready(Q request) {
        Message named = Ids.named(request);
        Texts.check(named);
        return (Q) named; // of the same type: only fields were set
    }

    /** One request, one reply. */
    <Q extends Message, R> R unary(MethodDescriptor<Q, R> method, Q request) {
        return send(method, ready(request), deadline(method));
    }

    /** One request that is ready, one reply. */
    <Q extends Message, R> R send(MethodDescriptor<Q, R> method, Q request, Deadline deadline) {
        if (breaker == null) {
            return sent(method, request, deadline);
        }
        boolean isTrial = breaker.admit(channel);
        try {
            R reply = sent(method, request, deadline);
            breaker.answered();
            return reply;
        } catch (ContextEngineException error) {
            breaker.failed(error, isTrial);
            throw error;
        } catch (RuntimeException | Error unsent) {
            breaker.abandoned(isTrial);
            throw unsent;
        }
    }

    /** As often as it may help. */
    private <Q extends Message, R> R sent(MethodDescriptor<Q, R> method, Q request, Deadline deadline) {
        CallOptions options =
                CallOptions.DEFAULT.withDeadline(deadline).withOption(Affinity.SESSION, Affinity.of(request));
        Attempts attempts = new Attempts(deadline, Calls.isSafeTwice(method) ? retryFor : Duration.ZERO, absence);
        while (true) {
            try {
                R reply = ClientCalls.blockingUnaryCall(channel, method, options, request);
                absence.end();
                return reply;
            } catch (StatusRuntimeException thrown) {
                ContextEngineException error = Failure.typed(thrown);
                sleep(attempts.pause(error).orElseThrow(() -> error));
            }
        }
    }

    /** Between two attempts. Where this is closed meanwhile, the attempt behind the pause says so. */
    private void sleep(Duration pause) {
        try {
            closed.await(pause.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            throw interrupted(interrupted);
        }
    }

    /** A call that fails as cancelled where this is closed: gRPC says that the service is away, and a call is sent again then. */
    private <Q, R> ClientCall<Q, R> ending(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
            @Override
            public void start(Listener<R> listener, Metadata headers) {
                super.start(
                        new SimpleForwardingClientCallListener<>(listener) {
                            @Override
                            public void onClose(Status status, Metadata trailers) {
                                if (isClosed() && !status.isOk()) {
                                    super.onClose(CLOSED.withCause(status.asException()), new Metadata());
                                } else {
                                    super.onClose(status, trailers);
                                }
                            }
                        },
                        headers);
            }
        };
    }

    /** One request, many replies. */
    <Q extends Message, R> Replies<R> replies(MethodDescriptor<Q, R> method, Q request) {
        Q ready = ready(request);
        BlockingStream<Q, R> stream = stream(method, Affinity.of(ready));
        stream.sendOnly(ready);
        return new Replies<>(stream);
    }

    /** A stream, begun. `session`: the name of the one that it is about; empty: of none. */
    <Q extends Message, R> BlockingStream<Q, R> stream(MethodDescriptor<Q, R> method, String session) {
        return new BlockingStream<>(
                channel.newCall(method, CallOptions.DEFAULT.withOption(Affinity.SESSION, session)));
    }

    /** What to throw where the thread of a call is interrupted. */
    static ContextEngineException interrupted(InterruptedException cause) {
        Thread.currentThread().interrupt();
        return Failure.of(Status.Code.CANCELLED, "", "the thread was interrupted", cause).typed();
    }

    boolean isClosed() {
        return managed.isShutdown();
    }

    @Override
    public void close() {
        managed.shutdownNow();
        closed.countDown();
    }
}
