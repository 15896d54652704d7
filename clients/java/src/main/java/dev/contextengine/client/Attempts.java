package dev.contextengine.client;

import io.grpc.Deadline;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** One unary call's attempts within its deadline. */
final class Attempts {
    private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
    /** Even with the jitter below a second: a server that is back is used within one. */
    private static final Duration LONGEST_PAUSE = Duration.ofMillis(800);
    /** Clients that lost one server do not come back all at once. */
    private static final double JITTER = 0.2;

    private final Deadline deadline;
    private final Duration retryFor;
    private final Absence absence;
    private long sent = System.nanoTime();
    /** When the first attempt found nobody, where one did. */
    private long missed;
    private int absences;
    private int refusals;

    /**
     * The attempts of a call that begins now.
     *
     * @param deadline null: there is none
     * @param retryFor how long UNAVAILABLE is answered with another attempt
     * @param absence what the connection knows; retryFor counts from its beginning
     */
    Attempts(Deadline deadline, Duration retryFor, Absence absence) {
        this.deadline = deadline;
        this.retryFor = retryFor;
        this.absence = absence;
    }

    /** How long to wait before the next attempt; empty where it would not help or would come too late. */
    Optional<Duration> pause(ContextEngineException error) {
        Optional<Duration> pause = error.code() == Status.Code.UNAVAILABLE ? whileAway() : refused(error);
        pause.ifPresent(wait -> sent = System.nanoTime() + wait.toNanos());
        return pause.filter(wait -> deadline == null || deadline.timeRemaining(TimeUnit.NANOSECONDS) > wait.toNanos());
    }

    private Optional<Duration> whileAway() {
        long now = System.nanoTime();
        absence.begin(sent);
        if (absences == 0) {
            missed = now;
        }
        double usual = Math.min(LONGEST_PAUSE.toNanos(), FIRST_PAUSE.toNanos() * Math.pow(3, absences++));
        long pause = (long) (usual * ThreadLocalRandom.current().nextDouble(1 - JITTER, 1 + JITTER));
        // Where others are answered meanwhile, this call still does not ask for ever.
        long lasted = Math.max(now - missed, absence.lasted(now));
        return lasted + pause >= retryFor.toNanos() ? Optional.empty() : Optional.of(Duration.ofNanos(pause));
    }

    private Optional<Duration> refused(ContextEngineException error) {
        // A deadline that passed or a broken connection has no reason, and is no answer.
        if (!error.reason().isEmpty()) {
            absence.end();
        }
        Duration usual = FIRST_PAUSE.multipliedBy(1L << refusals);
        boolean again = Failure.isTransient(error) && ++refusals < Calls.MAX_ATTEMPTS;
        return again ? Optional.of(error.retryAfter().orElse(usual)) : Optional.empty();
    }
}
