package dev.contextengine.client;

/**
 * Since when the service is away, as all calls of one connection see it: they wait for it together, not each anew. Times are those
 * of {@link System#nanoTime}.
 */
final class Absence {
    private boolean hasAnswered;
    private long answered;
    private boolean isAway;
    private long began;

    /** The service has answered something. */
    synchronized void end() {
        hasAnswered = true;
        answered = System.nanoTime();
        isAway = false;
    }

    /** An attempt that was sent then found nobody. What another call was answered meanwhile is the newer news. */
    synchronized void begin(long sent) {
        if (!isAway && (!hasAnswered || answered - sent <= 0)) {
            isAway = true;
            began = System.nanoTime();
        }
    }

    /** How long it has been at that time, in nanoseconds; 0 while the service is there. */
    synchronized long lasted(long now) {
        return isAway ? now - began : 0;
    }
}
