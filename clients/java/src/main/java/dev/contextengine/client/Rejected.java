package dev.contextengine.client;

import dev.contextengine.v1.AfterTurnRequest;

/**
 * A request that waited for the service to come back and was then refused for what it is.
 *
 * @param request what was refused; nobody stores its messages but the caller
 * @param error why
 */
public record Rejected(AfterTurnRequest request, ContextEngineException error) {}
