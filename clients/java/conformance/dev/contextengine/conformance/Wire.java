package dev.contextengine.conformance;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** What the driver's lines are made of: JSON objects, and messages in base64. */
final class Wire {
    private Wire() {}

    static JsonObject object(String key, JsonElement value) {
        JsonObject made = new JsonObject();
        made.add(key, value);
        return made;
    }

    static JsonObject responded(MessageLite reply) {
        return object("response", new JsonPrimitive(written(reply)));
    }

    static <M> M read(Parser<M> parser, JsonElement encoded) throws InvalidProtocolBufferException {
        return parser.parseFrom(Base64.getDecoder().decode(encoded.getAsString()));
    }

    static <M> List<M> all(Parser<M> parser, JsonElement encoded) throws InvalidProtocolBufferException {
        List<M> found = new ArrayList<>();
        for (JsonElement one : encoded.getAsJsonArray()) {
            found.add(read(parser, one));
        }
        return found;
    }

    static String written(MessageLite message) {
        byte[] encoded = new byte[message.getSerializedSize()];
        CodedOutputStream output = CodedOutputStream.newInstance(encoded);
        output.useDeterministicSerialization();
        try {
            message.writeTo(output);
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible); // the array has room for all
        }
        return Base64.getEncoder().encodeToString(encoded);
    }
}
