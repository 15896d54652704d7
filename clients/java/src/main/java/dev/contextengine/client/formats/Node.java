package dev.contextengine.client.formats;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.ByteString;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;

/**
 * A JSON object and where it stands.
 *
 * @param value the object
 * @param path its place
 */
record Node(JsonObject value, String path) {
    FormatException error(String key, String wanted) {
        return new FormatException(path + "." + key, wanted);
    }

    /** A member. Null where it is absent or null. */
    JsonElement get(String key) {
        JsonElement found = value.get(key);
        return found == null || found.isJsonNull() ? null : found;
    }

    /** A member that is a string, as it can be stored. Empty: it is none. */
    Optional<String> string(String key) {
        return get(key) instanceof JsonPrimitive found && found.isString()
                ? Optional.of(Json.storable(found.getAsString()))
                : Optional.empty();
    }

    /** A string. Empty where it is absent or null. */
    String text(String key) {
        return get(key) == null ? "" : string(key).orElseThrow(() -> error(key, "a string is needed"));
    }

    /** A string that is not empty. */
    String required(String key) {
        String text = text(key);
        if (text.isEmpty()) {
            throw error(key, "a string is needed");
        }
        return text;
    }

    /** Whether a member is the truth. */
    boolean isTrue(String key) {
        return get(key) instanceof JsonPrimitive found && found.isBoolean() && found.getAsBoolean();
    }

    /** A whole number. Empty where it is absent or null. */
    OptionalLong integer(String key) {
        JsonElement found = get(key);
        if (found == null) {
            return OptionalLong.empty();
        }
        try {
            if (found instanceof JsonPrimitive number && number.isNumber()) {
                return OptionalLong.of(new BigDecimal(number.getAsString()).longValueExact());
            }
        } catch (ArithmeticException | NumberFormatException notWhole) {
            // Refused below.
        }
        throw error(key, "a whole number of at most 64 bits is needed");
    }

    /** An object. Null where it is absent or null. */
    Node node(String key) {
        JsonElement found = get(key);
        if (found == null) {
            return null;
        }
        if (found instanceof JsonObject object) {
            return new Node(object, path + "." + key);
        }
        throw error(key, "an object is needed");
    }

    /** A list of objects. Empty where it is absent or null. */
    List<Node> nodes(String key) {
        JsonElement found = get(key);
        if (found == null) {
            return List.of();
        }
        if (!(found instanceof JsonArray list)) {
            throw error(key, "a list of objects is needed");
        }
        List<Node> nodes = new ArrayList<>();
        for (JsonElement element : list) {
            if (!(element instanceof JsonObject object)) {
                throw error(key, "a list of objects is needed");
            }
            nodes.add(new Node(object, path + "." + key + "[" + nodes.size() + "]"));
        }
        return nodes;
    }

    /** What else the object holds, as JSON. Empty: nothing. */
    ByteString rest(String... known) {
        JsonObject others = new JsonObject();
        Set<String> taken = Set.of(known);
        value.entrySet().stream()
                .filter(member -> !taken.contains(member.getKey()))
                .forEach(member -> others.add(member.getKey(), member.getValue()));
        return others.isEmpty() ? ByteString.EMPTY : Json.bytes(others);
    }
}
