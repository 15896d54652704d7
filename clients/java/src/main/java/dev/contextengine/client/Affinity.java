package dev.contextengine.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import dev.contextengine.v1.ImportRequest;
import dev.contextengine.v1.SessionRef;
import dev.contextengine.v1.WatchRequest;
import io.grpc.CallOptions;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/**
 * Names a call's session in its metadata, so that a proxy, or gRPC itself, can keep it at one of several servers. Servers do not
 * read it: any server serves any call.
 */
final class Affinity {
    /** The metadata that names a call's session. */
    static final String HEADER = "contextengine-session";

    /** How {@link Outgoing} hears of the name; empty where a request names no session. */
    static final CallOptions.Key<String> SESSION = CallOptions.Key.createWithDefault("contextengine-session", "");

    /** A child is made where its parent is. */
    private static final List<String> FIELDS = List.of("session", "parent", "child");

    private Affinity() {}

    /**
     * The name of a request's session: a hash, since ids may be anything and are nobody else's business. Of an import, the first
     * request names it; of what is watched, agent and session do. Empty: the request names none.
     */
    static String of(Message request) {
        if (request instanceof WatchRequest watch) {
            return watch.getAgentId().isEmpty() ? "" : named(watch.getAgentId(), watch.getSessionId());
        }
        if (request instanceof ImportRequest first) {
            return of(first.getHeader());
        }
        for (String name : FIELDS) {
            FieldDescriptor field = request.getDescriptorForType().findFieldByName(name);
            if (field != null && request.getField(field) instanceof SessionRef ref) {
                return named(ref.getAgentId(), ref.getSessionId().isEmpty() ? ref.getSessionKey() : ref.getSessionId());
            }
        }
        return "";
    }

    private static String named(String agent, String session) {
        return session.isEmpty() ? "" : hash(agent + "\0" + session);
    }

    private static String hash(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest, 0, 16);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible); // every Java platform has it
        }
    }
}
