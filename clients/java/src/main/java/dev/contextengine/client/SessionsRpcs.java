package dev.contextengine.client;

import dev.contextengine.v1.DeleteRequest;
import dev.contextengine.v1.DeleteResponse;
import dev.contextengine.v1.ExportRequest;
import dev.contextengine.v1.ExportResponse;
import dev.contextengine.v1.ImportRequest;
import dev.contextengine.v1.ImportResponse;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.SessionsGetRequest;
import dev.contextengine.v1.SessionsGetResponse;
import dev.contextengine.v1.SessionsGrpc;
import dev.contextengine.v1.SessionsListRequest;
import dev.contextengine.v1.SessionsListResponse;
import dev.contextengine.v1.WatchRequest;
import dev.contextengine.v1.WatchResponse;

/** Lists, moves, erases and watches sessions. */
public final class SessionsRpcs {
    private final Transport transport;

    SessionsRpcs(Transport transport) {
        this.transport = transport;
    }

    /** Lists sessions, newest write first. */
    public SessionsListResponse list(SessionsListRequest request) {
        return transport.unary(SessionsGrpc.getListMethod(), request);
    }

    /** Answers one session. */
    public SessionsGetResponse get(SessionsGetRequest request) {
        return transport.unary(SessionsGrpc.getGetMethod(), request);
    }

    /**
     * Stores a whole session, all or none. Messages keep the ids they have; the very same again is no error.
     *
     * @param header names the session
     * @param messages its messages in order; what fails while they are iterated stores nothing
     * @return what was stored
     */
    public ImportResponse importSession(ImportRequest.Header header, Iterable<Message> messages) {
        ImportRequest first = ImportRequest.newBuilder().setHeader(header).build();
        try (var stream = transport.stream(SessionsGrpc.getImportMethod(), Affinity.of(first))) {
            boolean open = stream.send(first);
            for (Message message : messages) {
                // Where the server has answered already, its answer says why.
                if (!open) {
                    break;
                }
                open = stream.send(ImportRequest.newBuilder().setMessage(message).build());
            }
            stream.finish();
            ImportResponse reply = stream.next();
            stream.next(); // the status, which comes behind the reply
            return reply;
        }
    }

    /**
     * Answers a session's rows as they are stored, native forms included: first the session, then its messages in order,
     * then its summaries.
     */
    public Replies<ExportResponse> export(ExportRequest request) {
        return transport.replies(SessionsGrpc.getExportMethod(), request);
    }

    /** Erases a session and everything derived from it. This cannot be undone. */
    public DeleteResponse delete(DeleteRequest request) {
        return transport.unary(SessionsGrpc.getDeleteMethod(), request);
    }

    /** Streams what happens to sessions, from now or from a resume position. What was missed is said by a gap event. */
    public Replies<WatchResponse> watch(WatchRequest request) {
        return transport.replies(SessionsGrpc.getWatchMethod(), request);
    }
}
