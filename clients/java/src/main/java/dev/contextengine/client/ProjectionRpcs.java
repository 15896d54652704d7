package dev.contextengine.client;

import dev.contextengine.v1.ProjectRequest;
import dev.contextengine.v1.ProjectResponse;
import dev.contextengine.v1.ProjectionGrpc;

/** Renders contexts for harnesses and providers. */
public final class ProjectionRpcs {
    private final Transport transport;

    ProjectionRpcs(Transport transport) {
        this.transport = transport;
    }

    /** Projects a session, or a list, into a target's form and tells the harness what to do with it. Writes nothing. */
    public ProjectResponse project(ProjectRequest request) {
        return transport.unary(ProjectionGrpc.getProjectMethod(), request);
    }
}
