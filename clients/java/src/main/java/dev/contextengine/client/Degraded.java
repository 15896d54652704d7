package dev.contextengine.client;

/**
 * Why the client made an assembly by itself.
 *
 * @param reason the error's reason, or the name of its gRPC code where it has none
 * @param error the error
 * @param unqueued how many messages of {@code ingest} the full queue did not take: nobody stores them but the caller
 */
public record Degraded(String reason, ContextEngineException error, int unqueued) {}
