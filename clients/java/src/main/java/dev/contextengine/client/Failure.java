package dev.contextengine.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/** What is known of a call that failed. Null: no retryAfter, no cause. */
record Failure(
        Status.Code code,
        String reason,
        String message,
        List<Violation> violations,
        Map<String, String> metadata,
        Duration retryAfter,
        Throwable cause) {
    private static final String DOMAIN = "contextengine";
    private static final String PREFIX = "ERROR_REASON_";

    private static final Map<String, Function<Failure, ContextEngineException>> BY_REASON = Map.ofEntries(
            Map.entry("INVALID_FIELD", ContextEngineException.InvalidField::new),
            Map.entry("CONTRADICTORY_FIELDS", ContextEngineException.ContradictoryFields::new),
            Map.entry("MALFORMED_REQUEST", ContextEngineException.MalformedRequest::new),
            Map.entry("BUDGET_IMPOSSIBLE", ContextEngineException.BudgetImpossible::new),
            Map.entry("SESSION_NOT_FOUND", ContextEngineException.SessionNotFound::new),
            Map.entry("ROW_NOT_FOUND", ContextEngineException.RowNotFound::new),
            Map.entry("MESSAGE_CONFLICT", ContextEngineException.MessageConflict::new),
            Map.entry("REQUEST_ID_REUSED", ContextEngineException.RequestIdReused::new),
            Map.entry("SESSION_EXISTS", ContextEngineException.SessionExists::new),
            Map.entry("UNKNOWN_ENGINE", ContextEngineException.UnknownEngine::new),
            Map.entry("REVISION_MISMATCH", ContextEngineException.RevisionMismatch::new),
            Map.entry("HAS_DEPENDENTS", ContextEngineException.HasDependents::new),
            Map.entry("LOST_RACE", ContextEngineException.LostRace::new),
            Map.entry("TOO_LARGE", ContextEngineException.TooLarge::new),
            Map.entry("OVERLOADED", ContextEngineException.Overloaded::new),
            Map.entry("BUDGET_SPENT", ContextEngineException.BudgetSpent::new),
            Map.entry("DRAINING", ContextEngineException.Draining::new),
            Map.entry("STORE_UNAVAILABLE", ContextEngineException.StoreUnavailable::new),
            Map.entry("UNAUTHENTICATED", ContextEngineException.Unauthenticated::new),
            Map.entry("PERMISSION_DENIED", ContextEngineException.PermissionDenied::new),
            Map.entry("ENGINE_FAILED", ContextEngineException.EngineFailed::new),
            Map.entry("NOT_YET_SERVED", ContextEngineException.NotYetServed::new),
            Map.entry("DEFECT", ContextEngineException.Defect::new),
            Map.entry("DEADLINE", ContextEngineException.DeadlinePassed::new),
            Map.entry("SESSION_REPLACED", ContextEngineException.SessionReplaced::new),
            Map.entry("CORRUPT_ROW", ContextEngineException.CorruptRow::new),
            Map.entry("POSITION_LOST", ContextEngineException.PositionLost::new),
            Map.entry("PROJECTION_IMPOSSIBLE", ContextEngineException.ProjectionImpossible::new),
            Map.entry("SPAWN_ENDED", ContextEngineException.SpawnEnded::new),
            Map.entry("SPAWN_LIMIT", ContextEngineException.SpawnLimit::new),
            Map.entry("HOST_CAPABILITY_MISSING", ContextEngineException.HostCapabilityMissing::new),
            Map.entry("QUEUE_FULL", ContextEngineException.QueueFull::new));

    /** Failures that never reached the service, and so carry no reason. */
    private static final Map<Status.Code, Function<Failure, ContextEngineException>> BY_CODE = Map.of(
            Status.Code.UNAVAILABLE, ContextEngineException.Unavailable::new,
            Status.Code.DEADLINE_EXCEEDED, ContextEngineException.DeadlinePassed::new,
            Status.Code.UNAUTHENTICATED, ContextEngineException.Unauthenticated::new,
            Status.Code.PERMISSION_DENIED, ContextEngineException.PermissionDenied::new);

    /** What a service says of a request that it will never take. */
    private static final Set<Status.Code> FOR_GOOD =
            Set.of(Status.Code.INVALID_ARGUMENT, Status.Code.ALREADY_EXISTS, Status.Code.OUT_OF_RANGE);

    /** A failure of the client itself. */
    static Failure of(Status.Code code, String reason, String message, Throwable cause) {
        return new Failure(code, reason, message, List.of(), Map.of(), null, cause);
    }

    /** The typed exception of what gRPC threw. */
    static ContextEngineException typed(StatusRuntimeException thrown) {
        return read(thrown.getStatus(), thrown.getTrailers(), thrown).typed();
    }

    /** The typed exception of how a stream ended. */
    static ContextEngineException typed(Status status, Metadata trailers) {
        return read(status, trailers, status.getCause()).typed();
    }

    ContextEngineException typed() {
        Function<Failure, ContextEngineException> make = reason.isEmpty() ? BY_CODE.get(code) : BY_REASON.get(reason);
        return make == null ? new ContextEngineException(this) : make.apply(this);
    }

    private static Failure read(Status status, Metadata trailers, Throwable cause) {
        String reason = "";
        Map<String, String> metadata = Map.of();
        List<Violation> violations = new ArrayList<>();
        Duration retryAfter = null;
        try {
            for (Any detail : StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList()) {
                if (detail.is(ErrorInfo.class)) {
                    ErrorInfo info = detail.unpack(ErrorInfo.class);
                    if (info.getDomain().equals(DOMAIN)) {
                        reason = info.getReason();
                        metadata = Map.copyOf(info.getMetadataMap());
                    }
                } else if (detail.is(RetryInfo.class)) {
                    com.google.protobuf.Duration delay = detail.unpack(RetryInfo.class).getRetryDelay();
                    retryAfter = Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
                } else if (detail.is(BadRequest.class)) {
                    for (BadRequest.FieldViolation found : detail.unpack(BadRequest.class).getFieldViolationsList()) {
                        violations.add(new Violation(found.getField(), found.getDescription()));
                    }
                }
            }
        } catch (InvalidProtocolBufferException | IllegalArgumentException damaged) {
            // The status itself still says what failed.
        }
        reason = reason.startsWith(PREFIX) ? reason.substring(PREFIX.length()) : reason;
        String message = status.getDescription() == null ? "no details" : status.getDescription();
        return new Failure(codeOf(status), reason, message, List.copyOf(violations), metadata, retryAfter, cause);
    }

    /** gRPC's code, but for a connection that broke before gRPC saw it: that is UNKNOWN in Java alone, and UNAVAILABLE elsewhere. */
    private static Status.Code codeOf(Status status) {
        boolean broke = status.getCode() == Status.Code.UNKNOWN && status.getCause() instanceof ClosedChannelException;
        return broke ? Status.Code.UNAVAILABLE : status.getCode();
    }

    /** Whether an error says that the service is away, rather than that something must be mended. */
    static boolean isBorne(ContextEngineException error) {
        return switch (error.code()) {
            case UNAVAILABLE, DEADLINE_EXCEEDED -> true;
            case UNKNOWN, INTERNAL -> error.reason().isEmpty();
            default -> isTransient(error);
        };
    }

    /** Whether the service refused a call without doing anything, and may take it soon. */
    static boolean isTransient(ContextEngineException error) {
        return error instanceof ContextEngineException.Overloaded || error instanceof ContextEngineException.LostRace;
    }

    /** Whether the service will never take what it refused with this error. */
    static boolean isForGood(ContextEngineException error) {
        return FOR_GOOD.contains(error.code()) || error instanceof ContextEngineException.TooLarge;
    }
}
