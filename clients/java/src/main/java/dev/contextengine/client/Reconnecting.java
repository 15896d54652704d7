package dev.contextengine.client;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Lets a channel look for a server that is away after 100 ms and then at least every second. gRPC's own pauses in Java begin with a
 * second, grow to two minutes and cannot be set; but they can be cut short.
 */
final class Reconnecting {
    private static final double FIRST_MS = 100;
    private static final double LONGEST_MS = 1_000;
    private static final double GROWTH = 1.6;
    private static final double JITTER = 0.2;

    private final ManagedChannel channel;

    private Reconnecting(ManagedChannel channel) {
        this.channel = channel;
    }

    /** Watches a channel until it is shut down. */
    static void watch(ManagedChannel channel) {
        new Reconnecting(channel).await();
    }

    private void await() {
        ConnectivityState state = channel.getState(false);
        if (state == ConnectivityState.TRANSIENT_FAILURE) {
            tryAfter(FIRST_MS);
        } else if (state != ConnectivityState.SHUTDOWN) {
            channel.notifyWhenStateChanged(state, this::await);
        }
    }

    private void tryAfter(double pause) {
        long jittered = (long) (pause * ThreadLocalRandom.current().nextDouble(1 - JITTER, 1));
        CompletableFuture.delayedExecutor(jittered, MILLISECONDS).execute(() -> {
            if (channel.getState(false) != ConnectivityState.TRANSIENT_FAILURE) {
                await();
                return;
            }
            channel.resetConnectBackoff();
            tryAfter(Math.min(pause * GROWTH, LONGEST_MS));
        });
    }
}
