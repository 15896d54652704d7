package dev.contextengine.client.formats;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.protobuf.ByteString;
import java.io.IOException;
import java.io.StringReader;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reading and writing JSON of others. Members keep their order and numbers their digits. */
final class Json {
    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u202[89]|.)", Pattern.DOTALL);

    // Java matches by code points, so a whole pair is none of these.
    private static final Pattern LONE_SURROGATE = Pattern.compile("\\p{Cs}");

    private Json() {}

    /** The value of JSON text. */
    static JsonElement parse(String text, String path) {
        try {
            JsonReader reader = new JsonReader(new StringReader(text));
            reader.setStrictness(Strictness.STRICT);
            reader.peek(); // nothing at all is not JSON, where Gson would read null
            JsonElement value = JsonParser.parseReader(reader);
            if (reader.peek() != JsonToken.END_DOCUMENT) {
                throw new FormatException(path, "something follows the JSON value");
            }
            return value;
        } catch (JsonParseException | IOException | NumberFormatException error) {
            throw new FormatException(path, "not JSON: " + error.getMessage());
        }
    }

    /** The object that JSON text is, and where it stands. */
    static Node parseObject(String text, String path) {
        if (parse(text, path) instanceof JsonObject object) {
            return new Node(object, path);
        }
        throw new FormatException(path, "an object is needed");
    }

    /** A value as compact JSON. Lone surrogates, which UTF-8 cannot say, are escaped; other characters stay as they are. */
    static String compact(JsonElement value) {
        String text = GSON.toJson(value);
        if (text.contains("\\u202")) {
            // Gson escapes the line separators of JavaScript, which other languages' clients do not.
            text = ESCAPE.matcher(text).replaceAll(found -> switch (found.group()) {
                case "\\u2028" -> "\u2028";
                case "\\u2029" -> "\u2029";
                default -> Matcher.quoteReplacement(found.group());
            });
        }
        return LONE_SURROGATE.matcher(text).replaceAll(
                found -> Matcher.quoteReplacement("\\u%04x".formatted((int) found.group().charAt(0))));
    }

    /** {@link #compact} in UTF-8. */
    static ByteString bytes(JsonElement value) {
        return ByteString.copyFromUtf8(compact(value));
    }

    /** U+FFFD for lone surrogates, which JSON can escape and UTF-8 cannot say. The native form has them. */
    static String storable(String text) {
        return LONE_SURROGATE.matcher(text).replaceAll("\ufffd");
    }

    /** JSON text as bytes that are to come back as they are. */
    static ByteString original(String text, String path) {
        if (LONE_SURROGATE.matcher(text).find()) {
            throw new FormatException(path, "not UTF-8: half a surrogate pair is needed as an escape");
        }
        return ByteString.copyFromUtf8(text);
    }

    /** An object that begins with these members. */
    static JsonObject object(String key, String value) {
        JsonObject made = new JsonObject();
        made.addProperty(key, value);
        return made;
    }

    static JsonArray array(List<? extends JsonElement> values) {
        JsonArray made = new JsonArray();
        values.forEach(made::add);
        return made;
    }

    /** Adds the members of a JSON object to an object; none where the bytes are no object. */
    static JsonObject more(JsonObject to, ByteString json) {
        membersOf(json).entrySet().forEach(member -> to.add(member.getKey(), member.getValue()));
        return to;
    }

    /** The JSON object in bytes; an empty one where they are none. */
    static JsonObject membersOf(ByteString json) {
        try {
            return parse(json.toStringUtf8(), "json") instanceof JsonObject object ? object : new JsonObject();
        } catch (FormatException notJson) {
            return new JsonObject();
        }
    }

    /** Bytes of base64. Empty: it is none. */
    static Optional<ByteString> base64(String text) {
        try {
            ByteString data = ByteString.copyFrom(Base64.getDecoder().decode(text));
            // Java also takes what lacks its padding; written again that would be another text.
            return base64(data).equals(text) ? Optional.of(data) : Optional.empty();
        } catch (IllegalArgumentException other) {
            return Optional.empty();
        }
    }

    static String base64(ByteString data) {
        return Base64.getEncoder().encodeToString(data.toByteArray());
    }
}
