package dev.contextengine.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Empty;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Whether the service is known to be away, so that no call waits for it once more: open from the first call that finds nobody, or
 * nobody who answers, until one is answered.
 */
final class Breaker {
    /** The rpc that asks. An empty request means the whole server; what the reply says is read from its bytes. */
    private static final MethodDescriptor<Empty, Empty> HEALTH = MethodDescriptor.<Empty, Empty>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("grpc.health.v1.Health/Check")
            .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
            .setResponseMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
            .build();
    /** The encoded HealthCheckResponse of a server that serves. One that drains says otherwise. */
    private static final ByteString SERVING = ByteString.copyFrom(new byte[] {0x08, 0x01});
    /** How long from its beginning calls wait for the answer of one question, all together. */
    private static final Duration PATIENCE = Duration.ofMillis(50);
    /** How long one question may take. It goes on beside the calls, which do not wait for it. */
    private static final Duration PROBE = Duration.ofSeconds(5);

    private static final Set<Status.Code> NO_ANSWER =
            Set.of(Status.Code.UNAVAILABLE, Status.Code.DEADLINE_EXCEEDED, Status.Code.CANCELLED);
    private static final Set<Status.Code> UNANSWERED =
            Set.of(Status.Code.DEADLINE_EXCEEDED, Status.Code.UNKNOWN, Status.Code.INTERNAL);

    /** What the call failed with that found the service away. Null: it is there, as far as is known. */
    private ContextEngineException known;
    /** The question that goes on. Null: none does. */
    private CompletableFuture<Void> asking;
    /** How long calls wait for its answer, by {@link System#nanoTime}. */
    private long until;

    /** The service is there. */
    synchronized void answered() {
        known = null;
    }

    /** A call has given up with this error. */
    synchronized void failed(ContextEngineException error) {
        boolean hasReason = !error.reason().isEmpty();
        if (error.code() == Status.Code.UNAVAILABLE || !hasReason && UNANSWERED.contains(error.code())) {
            known = error;
        } else if (hasReason) {
            known = null;
        }
    }

    /**
     * Throws what the call failed with that found the service away, an error of its own for each caller. While it is away, this
     * begins a question where none goes on, and waits for its answer until it is a moment old.
     */
    void check(Channel channel) {
        CompletableFuture<Void> asked = asked(channel);
        if (asked == null) {
            return;
        }
        try {
            asked.get(patience(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException | ExecutionException silent) {
            // What is known holds.
        } catch (InterruptedException interrupted) {
            throw Transport.interrupted(interrupted);
        }
        synchronized (this) {
            // A call that is cancelled says so itself.
            if (known != null && !Context.current().isCancelled()) {
                throw known.again();
            }
        }
    }

    private synchronized long patience() {
        return Math.max(0, until - System.nanoTime());
    }

    /** The question that goes on. Null: none is needed. */
    private synchronized CompletableFuture<Void> asked(Channel channel) {
        if (known == null) {
            return null;
        }
        if (asking == null) {
            CompletableFuture<Void> begun = new CompletableFuture<>();
            asking = begun;
            until = System.nanoTime() + PATIENCE.toNanos();
            // It outlives the call that begins it.
            Context.ROOT.run(() -> ClientCalls.asyncUnaryCall(
                    channel.newCall(HEALTH, CallOptions.DEFAULT.withDeadlineAfter(PROBE.toMillis(), TimeUnit.MILLISECONDS)),
                    Empty.getDefaultInstance(),
                    new Hearing(begun)));
        }
        return asking;
    }

    private synchronized void heard(boolean isThere, CompletableFuture<Void> asked) {
        if (isThere) {
            known = null;
        }
        asking = null;
        asked.complete(null);
    }

    /** Hears what becomes of a question. Whoever refuses it is there too. */
    private final class Hearing implements StreamObserver<Empty> {
        private final CompletableFuture<Void> asked;
        private boolean serves;

        Hearing(CompletableFuture<Void> asked) {
            this.asked = asked;
        }

        @Override
        public void onNext(Empty reply) {
            serves = reply.toByteString().equals(SERVING);
        }

        @Override
        public void onError(Throwable thrown) {
            heard(!NO_ANSWER.contains(Status.fromThrowable(thrown).getCode()), asked);
        }

        @Override
        public void onCompleted() {
            heard(serves, asked);
        }
    }
}
