package dev.contextengine.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Empty;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.Deadline;
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
 * nobody who answers; half-open once the service says that it serves, when calls go through as trials, all of them while that was
 * never wrong, then one at a time; closed once a call is answered.
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
    /**
     * How long a trial holds the other calls back at most: the longest deadline of a call that waits for no model. A compaction that
     * happens to be the trial may take ten times as long.
     */
    private static final Duration TRIAL = Duration.ofSeconds(60);
    /**
     * How long nothing is asked once the trial behind a question has failed: as long as a question that hangs takes anyway. Twice as
     * long each further time.
     */
    private static final Duration FIRST_PAUSE = Duration.ofSeconds(5);
    /**
     * The longest: calls that are answered again are found within a minute, and a call of 2 s that hangs each minute costs an agent a
     * thirtieth of its time.
     */
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(60);

    private static final Set<Status.Code> NO_ANSWER =
            Set.of(Status.Code.UNAVAILABLE, Status.Code.DEADLINE_EXCEEDED, Status.Code.CANCELLED);
    private static final Set<Status.Code> UNANSWERED =
            Set.of(Status.Code.DEADLINE_EXCEEDED, Status.Code.UNKNOWN, Status.Code.INTERNAL);

    /** What the newest call failed with that found the service away. Null: closed. */
    private ContextEngineException known;
    private boolean halfOpen;
    /** How long a trial holds others back. Null: there is none. */
    private Deadline trialUntil;
    /** The newest pause between a trial that failed and the next question. Zero: none has failed. */
    private Duration pause = Duration.ZERO;
    /** Null: there is none. */
    private Deadline pausedUntil;
    /** The question that goes on. Null: none does. */
    private CompletableFuture<Void> asking;
    /** How long calls wait for its answer, by {@link System#nanoTime}. */
    private long until;

    /** A call was answered: the service is there. */
    synchronized void answered() {
        known = null;
        halfOpen = false;
        trialUntil = null;
        pause = Duration.ZERO;
        pausedUntil = null;
    }

    /**
     * A call has given up with this error. Where the service said that it serves and a trial finds it away, it is asked the later
     * the next time.
     *
     * @param isTrial what {@link #admit} said of the call
     */
    synchronized void failed(ContextEngineException error, boolean isTrial) {
        boolean hasReason = !error.reason().isEmpty();
        boolean isAway = error.code() == Status.Code.UNAVAILABLE || !hasReason && UNANSWERED.contains(error.code());
        if (hasReason && !isAway) {
            answered();
            return;
        }
        if (isAway) {
            known = error;
        }
        if (isAway && isTrial && halfOpen) {
            halfOpen = false;
            Duration longer = pause.isZero() ? FIRST_PAUSE : pause.multipliedBy(2);
            pause = longer.compareTo(LONGEST_PAUSE) < 0 ? longer : LONGEST_PAUSE;
            pausedUntil = after(pause);
        }
        abandoned(isTrial);
    }

    /** A call has ended, and says nothing of the service where its caller cancelled it: another may be the trial. */
    synchronized void abandoned(boolean isTrial) {
        if (isTrial) {
            trialUntil = null;
        }
    }

    /**
     * Lets a call through; whether it is a trial. Throws what the call failed with that found the service away, an error of its own
     * for each caller. Where it is time to, this begins a question, and waits for its answer until it is a moment old.
     */
    boolean admit(Channel channel) {
        CompletableFuture<Void> asked = asked(channel);
        if (asked != null) {
            try {
                asked.get(patience(), TimeUnit.NANOSECONDS);
            } catch (TimeoutException | ExecutionException silent) {
                // What is known holds.
            } catch (InterruptedException interrupted) {
                throw Transport.interrupted(interrupted);
            }
        }
        synchronized (this) {
            // A call that is cancelled says so itself.
            if (known == null || Context.current().isCancelled()) {
                return false;
            }
            if (!halfOpen || !pause.isZero() && !isOver(trialUntil)) {
                throw known.again();
            }
            trialUntil = after(TRIAL);
            return true;
        }
    }

    private static Deadline after(Duration time) {
        return Deadline.after(time.toNanos(), TimeUnit.NANOSECONDS);
    }

    private static boolean isOver(Deadline end) {
        return end == null || end.isExpired();
    }

    private synchronized long patience() {
        return Math.max(0, until - System.nanoTime());
    }

    /** The question that goes on. Null: none is needed. */
    private synchronized CompletableFuture<Void> asked(Channel channel) {
        if (known == null || halfOpen || !isOver(pausedUntil)) {
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
        halfOpen = isThere && known != null;
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
