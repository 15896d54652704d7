package dev.contextengine.client;

import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AfterTurnResponse;
import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.AssembleResponse;
import dev.contextengine.v1.BootstrapRequest;
import dev.contextengine.v1.BootstrapResponse;
import dev.contextengine.v1.CallToolRequest;
import dev.contextengine.v1.CallToolResponse;
import dev.contextengine.v1.CommitCompactionRequest;
import dev.contextengine.v1.CommitCompactionResponse;
import dev.contextengine.v1.CompactRequest;
import dev.contextengine.v1.CompactResponse;
import dev.contextengine.v1.ContextEngineGrpc;
import dev.contextengine.v1.DisposeSessionRequest;
import dev.contextengine.v1.DisposeSessionResponse;
import dev.contextengine.v1.EndSessionRequest;
import dev.contextengine.v1.EndSessionResponse;
import dev.contextengine.v1.EndSubagentRequest;
import dev.contextengine.v1.EndSubagentResponse;
import dev.contextengine.v1.GetStatusRequest;
import dev.contextengine.v1.GetStatusResponse;
import dev.contextengine.v1.IngestBatchRequest;
import dev.contextengine.v1.IngestBatchResponse;
import dev.contextengine.v1.IngestRequest;
import dev.contextengine.v1.IngestResponse;
import dev.contextengine.v1.ListToolsRequest;
import dev.contextengine.v1.ListToolsResponse;
import dev.contextengine.v1.MaintainRequest;
import dev.contextengine.v1.MaintainResponse;
import dev.contextengine.v1.PrepareSubagentSpawnRequest;
import dev.contextengine.v1.PrepareSubagentSpawnResponse;
import dev.contextengine.v1.RecordHostChangeRequest;
import dev.contextengine.v1.RecordHostChangeResponse;
import dev.contextengine.v1.ReportUsageRequest;
import dev.contextengine.v1.ReportUsageResponse;
import dev.contextengine.v1.ResetSessionRequest;
import dev.contextengine.v1.ResetSessionResponse;
import dev.contextengine.v1.RollbackSubagentSpawnRequest;
import dev.contextengine.v1.RollbackSubagentSpawnResponse;
import dev.contextengine.v1.ShouldCompactRequest;
import dev.contextengine.v1.ShouldCompactResponse;
import dev.contextengine.v1.UpdateModelRequest;
import dev.contextengine.v1.UpdateModelResponse;

/** The life of sessions, and the context of each model call. Nothing is borne here: see {@link Session} for that. */
public final class ContextEngineRpcs {
    private final Transport transport;

    ContextEngineRpcs(Transport transport) {
        this.transport = transport;
    }

    /**
     * Introduces a host and a session to each other: capabilities, history, the session that this one continues. Optional,
     * safe to send twice. Answers what the engine is and whether the host should keep its own compaction.
     */
    public BootstrapResponse bootstrap(BootstrapRequest request) {
        return transport.unary(ContextEngineGrpc.getBootstrapMethod(), request);
    }

    /** Stores one message durably. The same id with other content is ALREADY_EXISTS. */
    public IngestResponse ingest(IngestRequest request) {
        return transport.unary(ContextEngineGrpc.getIngestMethod(), request);
    }

    /** Stores messages durably, all or none. A conflict is ALREADY_EXISTS, naming the message and both hashes. */
    public IngestBatchResponse ingestBatch(IngestBatchRequest request) {
        return transport.unary(ContextEngineGrpc.getIngestBatchMethod(), request);
    }

    /**
     * Answers the context for one model call. Stores {@code ingest} first and writes nothing else. Never waits for a
     * summarizer.
     */
    public AssembleResponse assemble(AssembleRequest request) {
        return transport.unary(ContextEngineGrpc.getAssembleMethod(), request);
    }

    /** Compacts the stored view, or proposes to. Answers honestly: compacted only where the next request is smaller. */
    public CompactResponse compact(CompactRequest request) {
        return transport.unary(ContextEngineGrpc.getCompactMethod(), request);
    }

    /** Takes or refuses what a Compact with {@code propose_only} proposed. */
    public CommitCompactionResponse commitCompaction(CommitCompactionRequest request) {
        return transport.unary(ContextEngineGrpc.getCommitCompactionMethod(), request);
    }

    /**
     * Says that a turn is over and hands over what it added. Returns as soon as that is durable; compaction runs in the
     * background.
     */
    public AfterTurnResponse afterTurn(AfterTurnRequest request) {
        return transport.unary(ContextEngineGrpc.getAfterTurnMethod(), request);
    }

    /** Says what the harness did to its own transcript: went back, compacted it, or had its native thread compacted. */
    public RecordHostChangeResponse recordHostChange(RecordHostChangeRequest request) {
        return transport.unary(ContextEngineGrpc.getRecordHostChangeMethod(), request);
    }

    /** Answers the transcript rewrites that the engine would like the harness to make. */
    public MaintainResponse maintain(MaintainRequest request) {
        return transport.unary(ContextEngineGrpc.getMaintainMethod(), request);
    }

    /** Says what the provider billed for an assembly, or that it refused one for its length. */
    public ReportUsageResponse reportUsage(ReportUsageRequest request) {
        return transport.unary(ContextEngineGrpc.getReportUsageMethod(), request);
    }

    /** Answers whether a compaction is due. */
    public ShouldCompactResponse shouldCompact(ShouldCompactRequest request) {
        return transport.unary(ContextEngineGrpc.getShouldCompactMethod(), request);
    }

    /** Sets the session's model, its window and its factor. */
    public UpdateModelResponse updateModel(UpdateModelRequest request) {
        return transport.unary(ContextEngineGrpc.getUpdateModelMethod(), request);
    }

    /** Answers how a session is: counts, tokens, engine, jobs, usage. */
    public GetStatusResponse getStatus(GetStatusRequest request) {
        return transport.unary(ContextEngineGrpc.getGetStatusMethod(), request);
    }

    /** Answers the tools that the session's engine offers to the model. */
    public ListToolsResponse listTools(ListToolsRequest request) {
        return transport.unary(ContextEngineGrpc.getListToolsMethod(), request);
    }

    /** Runs such a tool. Bad arguments and unknown tools answer a JSON error and never fail the call. */
    public CallToolResponse callTool(CallToolRequest request) {
        return transport.unary(ContextEngineGrpc.getCallToolMethod(), request);
    }

    /** Prepares the context of a child before it starts. */
    public PrepareSubagentSpawnResponse prepareSubagentSpawn(PrepareSubagentSpawnRequest request) {
        return transport.unary(ContextEngineGrpc.getPrepareSubagentSpawnMethod(), request);
    }

    /** Takes a preparation back. Safe twice and after expiry. */
    public RollbackSubagentSpawnResponse rollbackSubagentSpawn(RollbackSubagentSpawnRequest request) {
        return transport.unary(ContextEngineGrpc.getRollbackSubagentSpawnMethod(), request);
    }

    /** Says that a child ended. Best effort: an unknown child is no error. */
    public EndSubagentResponse endSubagent(EndSubagentRequest request) {
        return transport.unary(ContextEngineGrpc.getEndSubagentMethod(), request);
    }

    /** Empties a session's view. Rows stay and can be read as of an earlier revision; only Sessions.Delete erases. */
    public ResetSessionResponse resetSession(ResetSessionRequest request) {
        return transport.unary(ContextEngineGrpc.getResetSessionMethod(), request);
    }

    /** Ends a conversation for now: flushes and runs the end hooks. A later write opens it again. */
    public EndSessionResponse endSession(EndSessionRequest request) {
        return transport.unary(ContextEngineGrpc.getEndSessionMethod(), request);
    }

    /** Frees what the server holds in memory for a session. The next call reads it from the store again. */
    public DisposeSessionResponse disposeSession(DisposeSessionRequest request) {
        return transport.unary(ContextEngineGrpc.getDisposeSessionMethod(), request);
    }
}
