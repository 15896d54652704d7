package dev.contextengine.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.BootstrapRequest;
import dev.contextengine.v1.IngestBatchRequest;
import dev.contextengine.v1.IngestRequest;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.RecordHostChangeRequest;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** The ids that make a call safe to send twice. */
public final class Ids {
    private static final SecureRandom RANDOM = new SecureRandom();
    private static long lastMillis;
    private static int counter;

    private Ids() {}

    /**
     * A new id.
     *
     * @return a UUIDv7 (RFC 9562): 36 characters, rising with time, also within a millisecond of one process
     */
    public static synchronized String newId() {
        long now = System.currentTimeMillis();
        // The counter begins low, so that it can rise within the millisecond.
        counter = now > lastMillis ? RANDOM.nextInt(0x800) : counter + 1;
        lastMillis = Math.max(now, lastMillis);
        if (counter > 0xfff) {
            lastMillis++;
            counter = 0;
        }
        long high = lastMillis << 16 | 0x7000 | counter;
        long low = RANDOM.nextLong() >>> 2 | 1L << 63;
        return new UUID(high, low).toString();
    }

    /**
     * Messages with ids. Calls set missing ids by themselves, but only on what they send: whoever keeps messages to send them
     * again gives them their ids here.
     *
     * @param messages any messages
     * @return the same messages, those without an id with a new one
     */
    public static List<Message> withIds(Iterable<Message> messages) {
        List<Message> named = new ArrayList<>();
        messages.forEach(message -> named.add(withId(message)));
        return named;
    }

    private static Message withId(Message message) {
        return message.getId().isEmpty() ? message.toBuilder().setId(newId()).build() : message;
    }

    /** A request with its ids set. */
    static com.google.protobuf.Message named(com.google.protobuf.Message given) {
        if (given instanceof IngestRequest request) {
            return request.hasMessage() ? request.toBuilder().setMessage(withId(request.getMessage())).build() : request;
        }
        if (given instanceof IngestBatchRequest request) {
            return request.toBuilder().clearMessages().addAllMessages(withIds(request.getMessagesList())).build();
        }
        if (given instanceof AssembleRequest request) {
            AssembleRequest.Builder copy = request.toBuilder().clearIngest().addAllIngest(withIds(request.getIngestList()));
            return request.getLive().getStoreNew() ? copy.setRequestId(orNew(request.getRequestId())).build() : copy.build();
        }
        if (given instanceof BootstrapRequest request) {
            return request.toBuilder().setRequestId(orNew(request.getRequestId())).build();
        }
        if (given instanceof AfterTurnRequest request) {
            int old = known(request);
            return request.toBuilder()
                    .clearMessages()
                    .addAllMessages(request.getMessagesList().subList(0, old))
                    .addAllMessages(withIds(request.getMessagesList().subList(old, request.getMessagesCount())))
                    .setRequestId(orNew(request.getRequestId()))
                    .build();
        }
        if (given instanceof RecordHostChangeRequest request) {
            return request.toBuilder().setChangeId(orNew(request.getChangeId())).build();
        }
        FieldDescriptor field = given.getDescriptorForType().findFieldByName("request_id");
        if (field == null || !((String) given.getField(field)).isEmpty()) {
            return given;
        }
        return given.toBuilder().setField(field, newId()).build();
    }

    /** How many messages at the beginning of a request the turn did not add. */
    static int known(AfterTurnRequest request) {
        return (int) Math.max(0, Math.min(request.getPrePromptMessageCount(), request.getMessagesCount()));
    }

    static String orNew(String id) {
        return id.isEmpty() ? newId() : id;
    }
}
