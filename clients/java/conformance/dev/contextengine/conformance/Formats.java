package dev.contextengine.conformance;

import static dev.contextengine.conformance.Wire.all;
import static dev.contextengine.conformance.Wire.object;
import static dev.contextengine.conformance.Wire.written;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.contextengine.client.formats.AnthropicMessages;
import dev.contextengine.client.formats.OpenAiChat;
import dev.contextengine.client.formats.OpenAiResponses;
import dev.contextengine.v1.Message;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reading requests of providers, and writing them again. */
final class Formats {
    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
    private static final Pattern LONE_SURROGATE = Pattern.compile("\\p{Cs}");

    private Formats() {}

    /** What {@code format} answers. */
    static JsonObject format(JsonObject asked) throws InvalidProtocolBufferException {
        String format = asked.get("format").getAsString();
        if (asked.has("out")) {
            List<Message> messages = all(Message.parser(), asked.get("out"));
            String json = switch (format) {
                case OpenAiChat.FORMAT -> "{\"messages\":[" + String.join(",", OpenAiChat.write(messages)) + "]}";
                case OpenAiResponses.FORMAT -> "{\"input\":[" + String.join(",", OpenAiResponses.write(messages)) + "]}";
                default -> AnthropicMessages.write(messages).toJson();
            };
            return object("json", new JsonPrimitive(json));
        }
        JsonObject request = JsonParser.parseString(asked.get("in").getAsString()).getAsJsonObject();
        List<String> texts = new ArrayList<>();
        request.getAsJsonArray(format.equals(OpenAiResponses.FORMAT) ? "input" : "messages")
                .forEach(message -> texts.add(textOf(message)));
        List<Message> messages = switch (format) {
            case OpenAiChat.FORMAT -> OpenAiChat.read(texts);
            case OpenAiResponses.FORMAT -> OpenAiResponses.read(texts);
            default -> request.has("system")
                    ? AnthropicMessages.read(texts, textOf(request.get("system")))
                    : AnthropicMessages.read(texts);
        };
        JsonArray encoded = new JsonArray();
        messages.forEach(message -> encoded.add(written(message)));
        return object("messages", encoded);
    }

    /** A value as JSON text, in which halves of surrogate pairs are escaped again. */
    private static String textOf(JsonElement value) {
        return LONE_SURROGATE.matcher(GSON.toJson(value)).replaceAll(
                found -> Matcher.quoteReplacement("\\u%04x".formatted((int) found.group().charAt(0))));
    }
}
