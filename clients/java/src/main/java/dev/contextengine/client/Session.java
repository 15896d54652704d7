package dev.contextengine.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AfterTurnResponse;
import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.AssembleResponse;
import dev.contextengine.v1.CompactRequest;
import dev.contextengine.v1.CompactResponse;
import dev.contextengine.v1.ContextEngineGrpc;
import dev.contextengine.v1.DeleteRequest;
import dev.contextengine.v1.DeleteResponse;
import dev.contextengine.v1.EndSessionRequest;
import dev.contextengine.v1.EndSessionResponse;
import dev.contextengine.v1.IngestBatchRequest;
import dev.contextengine.v1.IngestBatchResponse;
import dev.contextengine.v1.IngestRequest;
import dev.contextengine.v1.IngestResponse;
import dev.contextengine.v1.Item;
import dev.contextengine.v1.LiveList;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.PrepareSubagentSpawnRequest;
import dev.contextengine.v1.PrepareSubagentSpawnResponse;
import dev.contextengine.v1.ProjectResponse;
import dev.contextengine.v1.ProjectionAction;
import dev.contextengine.v1.ProjectionOptions;
import dev.contextengine.v1.ProjectionTarget;
import dev.contextengine.v1.RecordHostChangeRequest;
import dev.contextengine.v1.RecordHostChangeResponse;
import dev.contextengine.v1.ReportUsageRequest;
import dev.contextengine.v1.ReportUsageResponse;
import dev.contextengine.v1.ResetSessionRequest;
import dev.contextengine.v1.ResetSessionResponse;
import dev.contextengine.v1.SessionRef;
import dev.contextengine.v1.SessionsGrpc;
import io.grpc.Deadline;
import io.grpc.MethodDescriptor;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * A handle on one session of an agent. It remembers its last assembly, so that replies carry only what is new. Safe to share
 * between threads. Requests need no session: the handle sets it.
 *
 * <p>While the service is away, {@link #assemble} answers a context made by the client, with {@code degraded} set; what is
 * written waits and is sent before the next call; {@code ingest}, {@code ingestBatch}, {@code afterTurn} and
 * {@code reportUsage} then answer an empty reply. Each of these calls may choose for itself, by {@link #bearing} and
 * {@link #failing}. Every other failure throws {@link ContextEngineException}.
 */
public final class Session extends SessionCalls {
    private final Remembered state;
    /** What its calls do while the service is away. */
    private final boolean bears;

    Session(ContextEngineClient client, SessionRef ref) {
        this(client, ref, new Remembered(), client.queue() != null);
    }

    private Session(ContextEngineClient client, SessionRef ref, Remembered state, boolean bears) {
        super(client, ref);
        this.state = state;
        this.bears = bears;
    }

    /**
     * The same session, whose calls bear that the service is away although the client does not. Without a queue nothing of them is
     * queued, and writes throw all the same.
     *
     * @return a handle that remembers with this one: {@code session.bearing().assemble(…)}
     */
    public Session bearing() {
        return new Session(client, ref, state, true);
    }

    /**
     * The same session, whose calls throw while the service is away although the client bears it. Nothing of them is queued.
     *
     * @return a handle that remembers with this one: {@code session.failing().ingest(…)}
     */
    public Session failing() {
        return new Session(client, ref, state, false);
    }

    /** {@return how many messages of the session wait for the service to come back} */
    public int pending() {
        return client.pending(ref);
    }

    /** Sends what waits. */
    public void flush() {
        client.flush(ref);
    }

    /**
     * Answers the context for one model call. Stores {@code ingest} first.
     *
     * @param request the request
     * @return the context, whole
     * @throws DeltaMismatchException where the reply does not fit what is held; the next call then gets everything
     */
    public Assembly assemble(AssembleRequest request) {
        return assemble(request, true, null);
    }

    /**
     * {@link #assemble} beside the host's own list, for the degraded case alone: while the service is away the context is made of
     * it, so that a handle that has seen nothing yet does not answer an empty one.
     *
     * @param request the request
     * @param hostMessages the host's own list; it is not sent
     * @return the context, whole
     */
    public Assembly assemble(AssembleRequest request, List<dev.contextengine.v1.Message> hostMessages) {
        return assemble(request, true, hostMessages);
    }

    /**
     * {@link #assemble} that asks for everything again.
     *
     * @param request the request
     * @return the context, whole
     */
    public Assembly assembleWhole(AssembleRequest request) {
        return assemble(request, false, null);
    }

    private Assembly assemble(
            AssembleRequest given, boolean delta, List<dev.contextengine.v1.Message> hostMessages) {
        MethodDescriptor<AssembleRequest, AssembleResponse> method = ContextEngineGrpc.getAssembleMethod();
        Deadline deadline = client.transport().deadline(method);
        Assembly base;
        synchronized (state) {
            base = delta ? state.held : null;
        }
        AssembleRequest request = Transport.ready(given.toBuilder()
                .setSession(ref)
                .setKnownContextHash(base == null ? ByteString.EMPTY : base.response().getContextHash())
                .setKnownEpoch(base == null ? "" : base.response().getContextProjection().getEpoch())
                .build());
        AssembleResponse reply;
        try {
            reply = behind(method, request, deadline);
        } catch (ContextEngineException error) {
            return without(request, error, hostMessages);
        }
        synchronized (state) {
            state.held = null;
            state.held = Assembly.extend(base, reply);
            state.last = state.held;
            state.later.clear();
            return state.held;
        }
    }

    /** The context without the service. Throws the error where it is not borne. */
    private Assembly without(
            AssembleRequest request, ContextEngineException error, List<dev.contextengine.v1.Message> hostMessages) {
        PendingQueue queue = bearing(error);
        int unqueued = queue == null ? request.getIngestCount() : 0;
        if (queue != null && request.getIngestCount() > 0) {
            try {
                queue.add(entry(request.getIngestList(), request.getRequestId()));
            } catch (ContextEngineException.QueueFull full) {
                unqueued = request.getIngestCount();
            }
        }
        AssembleRequest shown = request;
        if (hostMessages != null) {
            // What is ingested stands in the host's list already.
            LiveList live = LiveList.newBuilder().addAllMessages(hostMessages).build();
            shown = request.toBuilder().clearIngest().setLive(live).build();
        }
        AssembleResponse made;
        synchronized (state) {
            Assembly last = state.last;
            List<Item> items = last == null ? List.of() : last.items();
            made = Fallback.makeUp(shown, items, last == null ? null : last.response(), List.copyOf(state.later));
            state.handed(request.getIngestList());
        }
        String reason = error.reason().isEmpty() ? error.code().name() : error.reason();
        return new Assembly(made.getItemsList(), made, Optional.of(new Degraded(reason, error, unqueued)));
    }

    /**
     * Assembles and projects for Codex in one call.
     *
     * @param request with the turn's {@code prompt}, and in {@code projection} the binding of the last projection with the native
     *     thread in it; its target need not be set
     * @return the projection; store its binding with the thread, and hand it over next time
     */
    public ProjectResponse projectCodex(AssembleRequest request) {
        ProjectionOptions options =
                request.getProjection().toBuilder().setTarget(ProjectionTarget.PROJECTION_TARGET_CODEX).build();
        Assembly assembly = assemble(request.toBuilder().setProjection(options).build());
        if (assembly.degraded().isEmpty()) {
            return assembly.response().getProjection();
        }
        boolean bound = !options.getBinding().getThreadId().isEmpty();
        String prompt = request.getPromptList().stream()
                .filter(Part::hasText)
                .map(part -> part.getText().getText())
                .collect(Collectors.joining("\n"));
        ProjectResponse.Builder made = ProjectResponse.newBuilder()
                .setTarget(options.getTarget())
                .setRenderer(options.getRenderer())
                .setInstructions(options.getBaseInstructions())
                .setPrompt(prompt)
                .setAction(bound
                        ? ProjectionAction.PROJECTION_ACTION_RESUME
                        : ProjectionAction.PROJECTION_ACTION_START)
                .addWarnings("degraded: " + assembly.degraded().get().reason()
                        + ", the context of the session is not in this projection");
        return options.hasBinding() ? made.setBinding(options.getBinding()).build() : made.build();
    }

    /**
     * Stores one message durably. The same id with other content is MessageConflict.
     *
     * @param request the request
     * @return how it went
     */
    public IngestResponse ingest(IngestRequest request) {
        IngestRequest ready = Transport.ready(request.toBuilder().setSession(ref).build());
        List<dev.contextengine.v1.Message> messages = ready.hasMessage() ? List.of(ready.getMessage()) : List.of();
        AfterTurnRequest entry = entry(messages, ready.getRequestId());
        return write(ContextEngineGrpc.getIngestMethod(), ready, entry, IngestResponse.getDefaultInstance());
    }

    /**
     * Stores messages durably, all or none.
     *
     * @param request the request
     * @return how it went
     */
    public IngestBatchResponse ingestBatch(IngestBatchRequest request) {
        IngestBatchRequest ready = Transport.ready(request.toBuilder().setSession(ref).build());
        AfterTurnRequest entry = entry(ready.getMessagesList(), ready.getRequestId());
        return write(ContextEngineGrpc.getIngestBatchMethod(), ready, entry, IngestBatchResponse.getDefaultInstance());
    }

    /**
     * Says that a turn is over and hands over what it added. Conflicts are listed and stop nothing.
     *
     * @param request the request
     * @return how it went
     */
    public AfterTurnResponse afterTurn(AfterTurnRequest request) {
        AfterTurnRequest ready = Transport.ready(request.toBuilder().setSession(ref).build());
        return write(ContextEngineGrpc.getAfterTurnMethod(), ready, ready, AfterTurnResponse.getDefaultInstance());
    }

    /**
     * Says what the provider billed for an assembly, or that it refused one for its length.
     *
     * @param request the request
     * @return how it went
     */
    public ReportUsageResponse reportUsage(ReportUsageRequest request) {
        try {
            return behind(ContextEngineGrpc.getReportUsageMethod(), request.toBuilder().setSession(ref).build());
        } catch (ContextEngineException error) {
            bearing(error);
            return ReportUsageResponse.getDefaultInstance();
        }
    }

    /**
     * Compacts the stored view, or proposes to.
     *
     * @param request the request
     * @return what was compacted
     */
    public CompactResponse compact(CompactRequest request) {
        return behind(ContextEngineGrpc.getCompactMethod(), request.toBuilder().setSession(ref).build());
    }

    /**
     * Says what the harness did to its own transcript.
     *
     * @param request the request
     * @return how it went
     */
    public RecordHostChangeResponse recordHostChange(RecordHostChangeRequest request) {
        RecordHostChangeRequest named = request.toBuilder().setSession(ref).build();
        return changed(behind(ContextEngineGrpc.getRecordHostChangeMethod(), named));
    }

    /**
     * Prepares the context of a child of this session before it starts. What waits is sent first: a fork is to show it.
     *
     * @param request the request
     * @return what names the preparation
     */
    public PrepareSubagentSpawnResponse prepareSubagent(PrepareSubagentSpawnRequest request) {
        return behind(ContextEngineGrpc.getPrepareSubagentSpawnMethod(), request.toBuilder().setParent(ref).build());
    }

    /**
     * Empties the session's view. Rows stay.
     *
     * @param request the request
     * @return how it went
     */
    public ResetSessionResponse reset(ResetSessionRequest request) {
        return changed(behind(ContextEngineGrpc.getResetSessionMethod(), request.toBuilder().setSession(ref).build()));
    }

    /**
     * Ends the conversation for now. A later write opens it again.
     *
     * @param request the request
     * @return how it went
     */
    public EndSessionResponse end(EndSessionRequest request) {
        return behind(ContextEngineGrpc.getEndSessionMethod(), request.toBuilder().setSession(ref).build());
    }

    /**
     * Erases the session and everything derived from it, what waits to be sent included. This cannot be undone.
     *
     * @param request the request
     * @return how it went
     */
    public DeleteResponse delete(DeleteRequest request) {
        return changed(behind(SessionsGrpc.getDeleteMethod(), request.toBuilder().setSession(ref).build()));
    }

    /** Writes messages, or queues the entry that stands for them. */
    private <Q extends Message, R> R write(MethodDescriptor<Q, R> method, Q ready, AfterTurnRequest entry, R empty) {
        R reply;
        try {
            reply = behind(method, ready, client.transport().deadline(method));
        } catch (ContextEngineException error) {
            PendingQueue queue = bearing(error);
            if (queue == null) {
                throw error;
            }
            queue.add(entry);
            reply = empty;
        }
        synchronized (state) {
            state.handed(entry.getMessagesList().subList(Ids.known(entry), entry.getMessagesCount()));
        }
        return reply;
    }

    private AfterTurnRequest entry(List<dev.contextengine.v1.Message> messages, String requestId) {
        return AfterTurnRequest.newBuilder()
                .setSession(ref)
                .addAllMessages(messages)
                .setRequestId(Ids.orNew(requestId))
                .build();
    }

    /** The queue; null: the client has none. Throws the error where it is not borne. */
    private PendingQueue bearing(ContextEngineException error) {
        if (!bears || !Failure.isBorne(error)) {
            throw error;
        }
        return client.queue();
    }

    /** After a change that succeeded the session is not what the last good assembly showed. */
    private <R> R changed(R reply) {
        synchronized (state) {
            state.forget();
        }
        return reply;
    }

    private <Q extends Message, R> R behind(MethodDescriptor<Q, R> method, Q request) {
        return behind(method, Transport.ready(request), client.transport().deadline(method));
    }

    /** Sends what waits, then the request, within one deadline. */
    private <Q extends Message, R> R behind(MethodDescriptor<Q, R> method, Q ready, Deadline deadline) {
        client.flush(ref, deadline);
        return client.transport().send(method, ready, deadline);
    }
}
