package dev.contextengine.client;

import dev.contextengine.v1.ExpandRequest;
import dev.contextengine.v1.ExpandResponse;
import dev.contextengine.v1.InspectRequest;
import dev.contextengine.v1.InspectResponse;
import dev.contextengine.v1.RecallGrpc;
import dev.contextengine.v1.SearchRequest;
import dev.contextengine.v1.SearchResponse;

/** Finds and brings back what an assembly does not show. */
public final class RecallRpcs {
    private final Transport transport;

    RecallRpcs(Transport transport) {
        this.transport = transport;
    }

    /** Searches messages, summaries or memory, by words or by a regular expression. */
    public SearchResponse search(SearchRequest request) {
        return transport.unary(RecallGrpc.getSearchMethod(), request);
    }

    /** Answers what a summary covers. */
    public InspectResponse inspect(InspectRequest request) {
        return transport.unary(RecallGrpc.getInspectMethod(), request);
    }

    /** Brings back the summaries and messages under a summary, or a range of messages, within a token cap. */
    public ExpandResponse expand(ExpandRequest request) {
        return transport.unary(RecallGrpc.getExpandMethod(), request);
    }
}
