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
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(2);
    /** Clients that lost one server do not come back all at once. */
    private static final double JITTER = 0.2;

    private final long began = System.nanoTime();
    private final Deadline deadline;
    private final Duration retryFor;
    private boolean knownAway;
    private int absences;
    private int refusals;

    /**
     * The attempts of a call that begins now.
     *
     * @param deadline null: there is none
     * @param retryFor how long UNAVAILABLE is answered with another attempt
     * @param knownAway an earlier call asked for that long in vain, so this one makes a few attempts only
     */
    Attempts(Deadline deadline, Duration retryFor, boolean knownAway) {
        this.deadline = deadline;
        this.retryFor = retryFor;
        this.knownAway = knownAway;
    }

    /** How long to wait before the next attempt; empty where it would not help or would come too late. */
    Optional<Duration> pause(ContextEngineException error) {
        Optional<Duration> pause = Optional.empty();
        if (error.code() == Status.Code.UNAVAILABLE) {
            pause = whileAway();
        } else {
            knownAway = false;
            Duration usual = FIRST_PAUSE.multipliedBy(1L << refusals);
            if (Failure.isTransient(error) && ++refusals < Calls.MAX_ATTEMPTS) {
                pause = Optional.of(error.retryAfter().orElse(usual));
            }
        }
        return pause.filter(wait -> deadline == null || deadline.timeRemaining(TimeUnit.NANOSECONDS) > wait.toNanos());
    }

    /** Whether the next call need not ask for as long as this one did. */
    boolean knownAway() {
        return knownAway;
    }

    private Optional<Duration> whileAway() {
        double usual = Math.min(LONGEST_PAUSE.toNanos(), FIRST_PAUSE.toNanos() * Math.pow(3, absences++));
        long pause = (long) (usual * ThreadLocalRandom.current().nextDouble(1 - JITTER, 1 + JITTER));
        boolean enough = knownAway && absences >= Calls.MAX_ATTEMPTS;
        boolean late = System.nanoTime() - began + pause >= retryFor.toNanos();
        knownAway |= late && !retryFor.isZero();
        return enough || late ? Optional.empty() : Optional.of(Duration.ofNanos(pause));
    }
}
