package dev.contextengine.client.formats;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import dev.contextengine.v1.FilePart;
import dev.contextengine.v1.ImagePart;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.OpaquePart;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.ReasoningPart;
import dev.contextengine.v1.ToolCallPart;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Writes the input items of one Responses request. */
final class ResponsesWriter {
    /** Parts of a provider's own that stand within a message. */
    private static final Set<String> CONTENT = Set.of("refusal", "input_audio");

    /** Calls so far whose arguments are no JSON. */
    private final Set<String> custom = new HashSet<>();

    List<String> write(List<Message> messages) {
        List<String> items = new ArrayList<>();
        for (Message message : messages) {
            for (JsonElement item : itemsOf(message)) {
                if (item instanceof JsonObject call && OpenAiResponses.is(call, "type", "custom_tool_call")) {
                    custom.add(call.get("call_id").getAsString());
                }
                items.add(Json.compact(item));
            }
        }
        return items;
    }

    private List<? extends JsonElement> itemsOf(Message message) {
        if (message.getNative().getFormat().equals(OpenAiResponses.FORMAT)) {
            JsonElement original = Json.parse(message.getNative().getJson().toStringUtf8(), "native");
            return original instanceof JsonArray items ? items.asList() : List.of(original);
        }
        // All other roles are a user's to the model.
        String role = OpenAiResponses.ROLES.entrySet().stream()
                .filter(entry -> entry.getValue() == message.getRole())
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse("user");
        List<JsonObject> items = new ArrayList<>();
        List<JsonObject> stretch = new ArrayList<>();
        for (Part part : message.getPartsList()) {
            itemIn(part).ifPresentOrElse(
                    item -> {
                        say(role, stretch, items);
                        items.add(item);
                    },
                    () -> pieceIn(part, role).ifPresent(stretch::add));
        }
        say(role, stretch, items);
        return items;
    }

    /** Ends a stretch of text, pictures and files with its item; none where it holds nothing. */
    private static void say(String role, List<JsonObject> stretch, List<JsonObject> items) {
        if (!stretch.isEmpty()) {
            JsonObject item = Json.object("type", "message");
            item.addProperty("role", role);
            item.add("content", Json.array(stretch));
            items.add(item);
            stretch.clear();
        }
    }

    /** The item that a part is by itself. Empty: it belongs into a message, or nowhere. */
    private Optional<JsonObject> itemIn(Part part) {
        JsonObject item;
        switch (part.getKindCase()) {
            case REASONING -> {
                ReasoningPart thought = part.getReasoning();
                if (thought.getItemId().isEmpty()) {
                    return Optional.empty();
                }
                item = Json.object("type", "reasoning");
                item.addProperty("id", thought.getItemId());
                JsonArray summary = new JsonArray();
                if (!thought.getText().isEmpty()) {
                    JsonObject text = Json.object("type", "summary_text");
                    text.addProperty("text", thought.getText());
                    summary.add(text);
                }
                item.add("summary", summary);
                add(item, "encrypted_content", thought.getRedactedData().toStringUtf8());
            }
            case TOOL_CALL -> {
                return Optional.of(callIn(part));
            }
            case TOOL_RESULT -> {
                String callId = part.getToolResult().getCallId();
                item = Json.object("type", custom.contains(callId) ? "custom_tool_call_output" : "function_call_output");
                item.addProperty("call_id", callId);
                item.add("output", outputIn(part.getToolResult().getPartsList()));
            }
            case OPAQUE -> {
                OpaquePart own = part.getOpaque();
                boolean isItem = own.getFormat().equals(OpenAiResponses.FORMAT) && !CONTENT.contains(own.getType());
                return isItem ? Optional.of(Json.membersOf(own.getJson())) : Optional.empty();
            }
            default -> {
                return Optional.empty();
            }
        }
        return Optional.of(Json.more(item, part.getProviderMetadataJson()));
    }

    private static JsonObject callIn(Part part) {
        ToolCallPart call = part.getToolCall();
        JsonObject more = Json.membersOf(part.getProviderMetadataJson());
        boolean isCustom =
                OpenAiResponses.is(more, "type", "custom_tool_call") || OpenAiResponses.is(more, "type", "custom");
        String arguments = call.getArgumentsJson().toStringUtf8();
        JsonObject item = Json.object("call_id", call.getCallId());
        item.addProperty("name", call.getName());
        if (isCustom) {
            item.addProperty("input", arguments);
        } else {
            item.addProperty("arguments", arguments.isEmpty() ? "{}" : arguments);
        }
        add(item, "id", call.getItemId());
        add(item, "namespace", call.getNamespace());
        Json.more(item, part.getProviderMetadataJson());
        item.addProperty("type", isCustom ? "custom_tool_call" : "function_call");
        return item;
    }

    /** A result as one text, or as a list where it holds more. */
    private static JsonElement outputIn(List<Part> parts) {
        List<JsonObject> pieces = parts.stream().flatMap(part -> pieceIn(part, "user").stream()).toList();
        if (pieces.isEmpty()) {
            return new JsonPrimitive("");
        }
        JsonObject only = pieces.get(0);
        return pieces.size() == 1 && only.size() == 2 && only.has("text") ? only.get("text") : Json.array(pieces);
    }

    /** A part within a message. Empty: the format has no place for it. */
    private static Optional<JsonObject> pieceIn(Part part, String role) {
        JsonObject piece;
        switch (part.getKindCase()) {
            case TEXT -> {
                piece = Json.object("type", role.equals("assistant") ? "output_text" : "input_text");
                piece.addProperty("text", part.getText().getText());
            }
            case IMAGE -> {
                ImagePart image = part.getImage();
                piece = Json.object("type", "input_image");
                place(piece, image.hasData() ? DataUrl.of(image.getMimeType(), image.getData()) : image.getUri(), "image_url");
                add(piece, "detail", image.getDetail());
            }
            case FILE -> {
                FilePart file = part.getFile();
                piece = Json.object("type", "input_file");
                if (file.hasData()) {
                    place(piece, DataUrl.of(file.getMimeType(), file.getData()), "file_data");
                } else {
                    place(piece, file.getUri(), "file_url");
                }
                add(piece, "filename", file.getName());
            }
            case OPAQUE -> {
                OpaquePart own = part.getOpaque();
                boolean isOurs = own.getFormat().equals(OpenAiResponses.FORMAT);
                return isOurs ? Optional.of(Json.membersOf(own.getJson())) : Optional.empty();
            }
            default -> {
                return Optional.empty();
            }
        }
        return Optional.of(Json.more(piece, part.getProviderMetadataJson()));
    }

    /** Adds a medium's address; an id with the provider has a place of its own. */
    private static void place(JsonObject piece, String url, String key) {
        piece.addProperty(url.contains("://") || url.startsWith("data:") ? key : "file_id", url);
    }

    /** Adds a member where its text is not empty. */
    private static void add(JsonObject to, String key, String text) {
        if (!text.isEmpty()) {
            to.addProperty(key, text);
        }
    }
}
