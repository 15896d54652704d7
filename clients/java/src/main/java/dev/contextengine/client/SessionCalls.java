package dev.contextengine.client;

import dev.contextengine.v1.BootstrapRequest;
import dev.contextengine.v1.BootstrapResponse;
import dev.contextengine.v1.CallToolRequest;
import dev.contextengine.v1.CallToolResponse;
import dev.contextengine.v1.CommitCompactionRequest;
import dev.contextengine.v1.CommitCompactionResponse;
import dev.contextengine.v1.DisposeSessionRequest;
import dev.contextengine.v1.DisposeSessionResponse;
import dev.contextengine.v1.EndSubagentRequest;
import dev.contextengine.v1.EndSubagentResponse;
import dev.contextengine.v1.ExportRequest;
import dev.contextengine.v1.ExportResponse;
import dev.contextengine.v1.GetStatusRequest;
import dev.contextengine.v1.GetStatusResponse;
import dev.contextengine.v1.ListToolsRequest;
import dev.contextengine.v1.ListToolsResponse;
import dev.contextengine.v1.MaintainRequest;
import dev.contextengine.v1.MaintainResponse;
import dev.contextengine.v1.RollbackSubagentSpawnRequest;
import dev.contextengine.v1.RollbackSubagentSpawnResponse;
import dev.contextengine.v1.SessionRef;
import dev.contextengine.v1.ShouldCompactRequest;
import dev.contextengine.v1.ShouldCompactResponse;
import dev.contextengine.v1.UpdateModelRequest;
import dev.contextengine.v1.UpdateModelResponse;
import dev.contextengine.v1.WatchRequest;
import dev.contextengine.v1.WatchResponse;

/** The calls of a {@link Session} that need nothing of what it remembers. They throw while the service is away. */
public abstract class SessionCalls {
    final ContextEngineClient client;
    final SessionRef ref;

    SessionCalls(ContextEngineClient client, SessionRef ref) {
        this.client = client;
        this.ref = ref;
    }

    /** {@return what names the session in every call} */
    public SessionRef ref() {
        return ref;
    }

    /**
     * Introduces a host and the session to each other. Optional.
     *
     * @param request the request
     * @return the engine that serves the session, and what is held of it
     */
    public BootstrapResponse bootstrap(BootstrapRequest request) {
        return client.contextEngine().bootstrap(request.toBuilder().setSession(ref).build());
    }

    /**
     * Answers whether a compaction is due.
     *
     * @param request the request
     * @return whether it is, and why
     */
    public ShouldCompactResponse shouldCompact(ShouldCompactRequest request) {
        return client.contextEngine().shouldCompact(request.toBuilder().setSession(ref).build());
    }

    /**
     * Takes or refuses what a compaction with {@code propose_only} proposed.
     *
     * @param request the request
     * @return how it went
     */
    public CommitCompactionResponse commitCompaction(CommitCompactionRequest request) {
        return client.contextEngine().commitCompaction(request.toBuilder().setSession(ref).build());
    }

    /**
     * Answers the transcript rewrites that the engine would like; with {@code lend}, jobs for a model that the host can lend only
     * now, whose results go into {@code completions} of the next call.
     *
     * @param request the request
     * @return the rewrites, and the jobs
     */
    public MaintainResponse maintain(MaintainRequest request) {
        return client.contextEngine().maintain(request.toBuilder().setSession(ref).build());
    }

    /**
     * Sets the session's model, its window and its factor.
     *
     * @param request the request
     * @return how it went
     */
    public UpdateModelResponse updateModel(UpdateModelRequest request) {
        return client.contextEngine().updateModel(request.toBuilder().setSession(ref).build());
    }

    /**
     * Answers how the session is: counts, tokens, engine, jobs, usage.
     *
     * @param request the request
     * @return how it is
     */
    public GetStatusResponse status(GetStatusRequest request) {
        return client.contextEngine().getStatus(request.toBuilder().setSession(ref).build());
    }

    /**
     * Answers the tools that the session's engine offers to the model.
     *
     * @param request the request
     * @return the tools
     */
    public ListToolsResponse listTools(ListToolsRequest request) {
        return client.contextEngine().listTools(request.toBuilder().setSession(ref).build());
    }

    /**
     * Runs such a tool. Bad arguments and unknown tools answer a JSON error. Sent once.
     *
     * @param request the request
     * @return what the tool answers
     */
    public CallToolResponse callTool(CallToolRequest request) {
        return client.contextEngine().callTool(request.toBuilder().setSession(ref).build());
    }

    /**
     * Takes a preparation of a child of this session back. Safe twice and after expiry.
     *
     * @param spawnToken what names the preparation
     * @return how it went
     */
    public RollbackSubagentSpawnResponse rollbackSubagent(String spawnToken) {
        return client.contextEngine().rollbackSubagentSpawn(RollbackSubagentSpawnRequest.newBuilder()
                .setSpawnToken(spawnToken)
                .setParent(ref)
                .build());
    }

    /**
     * Says that this session, a child, ended. An unknown child is no error.
     *
     * @param request the request
     * @return how it went
     */
    public EndSubagentResponse endAsSubagent(EndSubagentRequest request) {
        return client.contextEngine().endSubagent(request.toBuilder().setChild(ref).build());
    }

    /**
     * Streams the session's rows as they are stored: the session, its messages in order, its summaries.
     *
     * @param request the request
     * @return the rows
     */
    public Replies<ExportResponse> export(ExportRequest request) {
        return client.sessions().export(request.toBuilder().setSession(ref).build());
    }

    /**
     * Streams what happens to the session.
     *
     * @param resumePosition the position of the last event seen; empty: from now on
     * @return the events
     */
    public Replies<WatchResponse> watch(String resumePosition) {
        return client.sessions().watch(WatchRequest.newBuilder()
                .setAgentId(ref.getAgentId())
                .setSessionId(ref.getSessionId())
                .setResumePosition(resumePosition)
                .build());
    }

    /**
     * Frees what the server holds in memory for the session.
     *
     * @return how it went
     */
    public DisposeSessionResponse dispose() {
        return client.contextEngine().disposeSession(DisposeSessionRequest.newBuilder().setSession(ref).build());
    }
}
