package dev.contextengine.client;

import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A call that failed. Subclasses are named for the reason; this class itself means a reason without a class here, or none.
 *
 * <p>Its message says what went wrong, for people.
 */
public class ContextEngineException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Failure failure;

    ContextEngineException(Failure failure) {
        super(failure.message(), failure.cause());
        this.failure = failure;
    }

    /** {@return an error of its own that says the same} */
    final ContextEngineException again() {
        return failure.typed();
    }

    /**
     * The gRPC status.
     *
     * @return its code
     */
    public final Status.Code code() {
        return failure.code();
    }

    /**
     * Why it failed.
     *
     * @return a value of {@code contextengine.v1.ErrorReason} without its prefix; empty where the transport failed and not the
     *     service
     */
    public final String reason() {
        return failure.reason();
    }

    /**
     * The fields of the request that are wrong.
     *
     * @return them; empty where that is not what failed
     */
    public final List<Violation> violations() {
        return failure.violations();
    }

    /**
     * Facts of the failure.
     *
     * @return them by name, as {@code ErrorReason} documents them
     */
    public final Map<String, String> metadata() {
        return failure.metadata();
    }

    /**
     * When to try again.
     *
     * @return how long to wait; empty where the server did not say
     */
    public final Optional<Duration> retryAfter() {
        return Optional.ofNullable(failure.retryAfter());
    }

    @Override
    public final String toString() {
        String why = reason().isEmpty() ? code().name() : reason();
        return getClass().getName() + ": " + why + ": " + getMessage();
    }

    /** A field is missing, malformed or out of its range; {@link #violations} names it. */
    public static final class InvalidField extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        InvalidField(Failure failure) {
            super(failure);
        }
    }

    /** Fields that exclude each other were given; {@link #violations} names them. */
    public static final class ContradictoryFields extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        ContradictoryFields(Failure failure) {
            super(failure);
        }
    }

    /** The request's bytes are not a message of its type. */
    public static final class MalformedRequest extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        MalformedRequest(Failure failure) {
            super(failure);
        }
    }

    /** The budget leaves nothing: reserves reach the window. */
    public static final class BudgetImpossible extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        BudgetImpossible(Failure failure) {
            super(failure);
        }
    }

    /** No such session for this tenant and agent. */
    public static final class SessionNotFound extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        SessionNotFound(Failure failure) {
            super(failure);
        }
    }

    /** No such message, summary, proposal or other row in the session. */
    public static final class RowNotFound extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        RowNotFound(Failure failure) {
            super(failure);
        }
    }

    /** A message id is stored with other content; {@link #metadata} has the index, the id and both hashes. */
    public static final class MessageConflict extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        MessageConflict(Failure failure) {
            super(failure);
        }
    }

    /** The request id was used for another request. */
    public static final class RequestIdReused extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        RequestIdReused(Failure failure) {
            super(failure);
        }
    }

    /** An import found a session that holds other messages. */
    public static final class SessionExists extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        SessionExists(Failure failure) {
            super(failure);
        }
    }

    /** The chosen engine does not exist; {@link #metadata} has the ids that do. */
    public static final class UnknownEngine extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        UnknownEngine(Failure failure) {
            super(failure);
        }
    }

    /** The session's revision is not the expected one; {@link #metadata} has both. */
    public static final class RevisionMismatch extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        RevisionMismatch(Failure failure) {
            super(failure);
        }
    }

    /** Live forks or continuations stand on the session to delete. */
    public static final class HasDependents extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        HasDependents(Failure failure) {
            super(failure);
        }
    }

    /** Another writer won the session more often than was retried. Nothing was changed: send again. */
    public static final class LostRace extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        LostRace(Failure failure) {
            super(failure);
        }
    }

    /** A message, batch or session is larger than its limit; {@link #metadata} has both. */
    public static final class TooLarge extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        TooLarge(Failure failure) {
            super(failure);
        }
    }

    /** Too many calls at once. Nothing was done; {@link #retryAfter} says when to try again. */
    public static final class Overloaded extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        Overloaded(Failure failure) {
            super(failure);
        }
    }

    /** A spending cap is reached; {@link #metadata} has the scope, the use, the cap and when it passes again. */
    public static final class BudgetSpent extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        BudgetSpent(Failure failure) {
            super(failure);
        }
    }

    /** The server cannot be reached or cannot serve now. */
    public static class Unavailable extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        Unavailable(Failure failure) {
            super(failure);
        }
    }

    /** The server drains; {@link #retryAfter} says when to try another. */
    public static final class Draining extends Unavailable {
        private static final long serialVersionUID = 1L;

        Draining(Failure failure) {
            super(failure);
        }
    }

    /** The store cannot write now. Nothing was changed. */
    public static final class StoreUnavailable extends Unavailable {
        private static final long serialVersionUID = 1L;

        StoreUnavailable(Failure failure) {
            super(failure);
        }
    }

    /** No token, or one that is not known. */
    public static final class Unauthenticated extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        Unauthenticated(Failure failure) {
            super(failure);
        }
    }

    /** The token's role does not allow this call. */
    public static final class PermissionDenied extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        PermissionDenied(Failure failure) {
            super(failure);
        }
    }

    /** The engine threw, or its plan broke a law; {@link #metadata} has the engine, the operation and the law. */
    public static final class EngineFailed extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        EngineFailed(Failure failure) {
            super(failure);
        }
    }

    /** The rpc is part of the contract and not served by this version of the server. */
    public static final class NotYetServed extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        NotYetServed(Failure failure) {
            super(failure);
        }
    }

    /** A defect of the service; {@link #metadata} has an id to look for in its log. */
    public static final class Defect extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        Defect(Failure failure) {
            super(failure);
        }
    }

    /** The deadline passed before the work was done, or before a revision was reached. */
    public static final class DeadlinePassed extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        DeadlinePassed(Failure failure) {
            super(failure);
        }
    }

    /** The session was deleted while it was read as of a revision. */
    public static final class SessionReplaced extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        SessionReplaced(Failure failure) {
            super(failure);
        }
    }

    /** A stored row does not match its hash. */
    public static final class CorruptRow extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        CorruptRow(Failure failure) {
            super(failure);
        }
    }

    /** A resume position is older than what the server still has. */
    public static final class PositionLost extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        PositionLost(Failure failure) {
            super(failure);
        }
    }

    /** What a projection may not cut exceeds the target's limit. */
    public static final class ProjectionImpossible extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        ProjectionImpossible(Failure failure) {
            super(failure);
        }
    }

    /** The spawn that a token names is over; {@link #metadata} has why. */
    public static final class SpawnEnded extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        SpawnEnded(Failure failure) {
            super(failure);
        }
    }

    /** A child would be too deep, or its parent has too many live ones; {@link #metadata} has which, and the limit. */
    public static final class SpawnLimit extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        SpawnLimit(Failure failure) {
            super(failure);
        }
    }

    /** The host cannot do what the chosen engine needs; {@link #metadata} has what is missing. */
    public static final class HostCapabilityMissing extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        HostCapabilityMissing(Failure failure) {
            super(failure);
        }
    }

    /** The service is away and the client's queue holds all that it may. Thrown by the client itself. */
    public static final class QueueFull extends ContextEngineException {
        private static final long serialVersionUID = 1L;

        QueueFull(Failure failure) {
            super(failure);
        }
    }
}
