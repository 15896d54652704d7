package dev.contextengine.client.formats;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.ByteString;
import dev.contextengine.client.Messages;
import dev.contextengine.v1.FilePart;
import dev.contextengine.v1.ImagePart;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.Native;
import dev.contextengine.v1.OpaquePart;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.ReasoningPart;
import dev.contextengine.v1.Role;
import dev.contextengine.v1.ToolCallPart;
import dev.contextengine.v1.ToolResultPart;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** OpenAI Chat Completions: the messages of a request, each as JSON text. */
public final class OpenAiChat {
    /** The name of the format in {@code Message.native}. */
    public static final String FORMAT = "openai.chat";

    private static final Map<String, Role> ROLES = new LinkedHashMap<>();

    static {
        ROLES.put("user", Role.ROLE_USER);
        ROLES.put("assistant", Role.ROLE_ASSISTANT);
        ROLES.put("tool", Role.ROLE_TOOL);
        ROLES.put("system", Role.ROLE_SYSTEM);
        ROLES.put("developer", Role.ROLE_DEVELOPER);
    }

    private OpenAiChat() {}

    /**
     * Reads the messages of a request.
     *
     * @param messages each message's JSON
     * @return messages that keep their originals in {@code native}, byte for byte; they have no ids: see
     *     {@link dev.contextengine.client.Ids#withIds}
     * @throws FormatException where one is no such message
     */
    public static List<Message> read(List<String> messages) {
        List<Message> found = new ArrayList<>();
        for (String json : messages) {
            String path = "messages[" + found.size() + "]";
            Native original = Native.newBuilder().setFormat(FORMAT).setJson(Json.original(json, path)).build();
            found.add(messageOf(Json.parseObject(json, path)).setNative(original).build());
        }
        return found;
    }

    private static Message.Builder messageOf(Node node) {
        Role role = ROLES.get(node.required("role"));
        if (role == null) {
            throw node.error("role", "one of " + String.join(", ", ROLES.keySet()) + " is needed");
        }
        Message.Builder message = Message.newBuilder().setRole(role);
        List<Part> content = contentOf(node);
        if (role == Role.ROLE_TOOL) {
            ToolResultPart.Builder result = ToolResultPart.newBuilder()
                    .setCallId(node.required("tool_call_id"))
                    .setName(node.text("name"))
                    .addAllParts(content);
            return message.addParts(Part.newBuilder().setToolResult(result));
        }
        String reasoning = node.text("reasoning_content");
        if (!reasoning.isEmpty()) {
            message.addParts(Part.newBuilder().setReasoning(ReasoningPart.newBuilder().setText(reasoning)));
        }
        message.setName(node.text("name")).addAllParts(content);
        if (!node.text("refusal").isEmpty()) {
            JsonObject said = Json.object("type", "refusal");
            said.add("refusal", node.get("refusal"));
            message.addParts(opaque("refusal", said));
        }
        node.nodes("tool_calls").forEach(call -> message.addParts(callOf(call)));
        return message;
    }

    private static List<Part> contentOf(Node node) {
        return node.string("content")
                .map(text -> List.of(Messages.text(text)))
                .orElseGet(() -> node.nodes("content").stream().map(OpenAiChat::partOf).toList());
    }

    private static Part partOf(Node node) {
        String type = node.required("type");
        Node image = node.node("image_url");
        Node file = node.node("file");
        if (type.equals("text")) {
            return Messages.text(node.text("text")).toBuilder().setProviderMetadataJson(node.rest("type", "text")).build();
        }
        if (type.equals("image_url") && image != null) {
            String url = image.required("url");
            ImagePart.Builder part = ImagePart.newBuilder().setDetail(image.text("detail"));
            DataUrl.parse(url).ifPresentOrElse(
                    found -> part.setMimeType(found.mimeType()).setData(found.data()), () -> part.setUri(url));
            return Part.newBuilder().setImage(part).setProviderMetadataJson(node.rest("type", "image_url")).build();
        }
        if (type.equals("file") && file != null) {
            FilePart.Builder part = FilePart.newBuilder().setName(file.text("filename"));
            DataUrl.parse(file.text("file_data")).ifPresentOrElse(
                    found -> part.setMimeType(found.mimeType()).setData(found.data()),
                    () -> part.setUri(file.text("file_id")));
            return Part.newBuilder().setFile(part).setProviderMetadataJson(node.rest("type", "file")).build();
        }
        return opaque(type, node.value());
    }

    /** A tool call. A custom tool's input is text of any kind, and stands where arguments stand. */
    private static Part callOf(Node node) {
        Node custom = node.node("custom");
        Node body = custom == null ? node.node("function") : custom;
        if (body == null) {
            throw node.error("function", "an object is needed");
        }
        String key = custom == null ? "arguments" : "input";
        JsonElement given = Objects.requireNonNullElseGet(body.get(key), JsonObject::new);
        ToolCallPart.Builder call = ToolCallPart.newBuilder()
                .setCallId(node.required("id"))
                .setName(body.required("name"))
                .setArgumentsJson(body.string(key).map(ByteString::copyFromUtf8).orElseGet(() -> Json.bytes(given)));
        boolean plain = node.get("type") == null || node.text("type").equals("function");
        ByteString rest = plain ? node.rest("id", "function", "custom", "type") : node.rest("id", "function", "custom");
        return Part.newBuilder().setToolCall(call).setProviderMetadataJson(rest).build();
    }

    /**
     * Writes the messages of a request. What came from OpenAI comes back as it was; what the format cannot say is left out. A
     * tool message with several results becomes several. What is said beside some of a step's results stands behind them all:
     * the API wants them directly behind the calls.
     *
     * @param messages any messages
     * @return each message's JSON
     */
    public static List<String> write(List<Message> messages) {
        List<String> written = new ArrayList<>();
        List<String> beside = new ArrayList<>();
        for (Message message : messages) {
            boolean answers = AnthropicMessages.hasResults(message);
            if (!answers) {
                written.addAll(beside);
                beside.clear();
            }
            if (message.getNative().getFormat().equals(FORMAT)) {
                written.add(message.getNative().getJson().toStringUtf8());
                continue;
            }
            List<Part> others = new ArrayList<>();
            int before = written.size();
            for (Part part : message.getPartsList()) {
                if (part.hasToolResult()) {
                    written.add(Json.compact(resultIn(part.getToolResult())));
                } else {
                    others.add(part);
                }
            }
            if (!others.isEmpty() || written.size() == before) {
                (answers ? beside : written).add(Json.compact(messageIn(message, others)));
            }
        }
        written.addAll(beside);
        return written;
    }

    private static JsonObject resultIn(ToolResultPart result) {
        JsonObject written = Json.object("role", "tool");
        written.addProperty("tool_call_id", result.getCallId());
        if (!result.getName().isEmpty()) {
            written.addProperty("name", result.getName());
        }
        written.add("content", contentIn(result.getPartsList()).orElseGet(() -> new JsonPrimitive("")));
        return written;
    }

    private static JsonObject messageIn(Message message, List<Part> parts) {
        // Roles of a harness's own are a user's to the model.
        String role = ROLES.entrySet().stream()
                .filter(entry -> entry.getValue() == message.getRole())
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse("user");
        JsonObject written = Json.object("role", role);
        if (!message.getName().isEmpty()) {
            written.addProperty("name", message.getName());
        }
        JsonElement nothing = message.getRole() == Role.ROLE_ASSISTANT ? JsonNull.INSTANCE : new JsonPrimitive("");
        written.add("content", contentIn(parts).orElse(nothing));
        parts.stream().filter(OpenAiChat::isRefusal).forEach(
                part -> written.add("refusal", Json.membersOf(part.getOpaque().getJson()).get("refusal")));
        List<JsonObject> calls = parts.stream().filter(Part::hasToolCall).map(OpenAiChat::callIn).toList();
        if (!calls.isEmpty()) {
            written.add("tool_calls", Json.array(calls));
        }
        return written;
    }

    /** One plain text as a string, anything else as a list. Empty: nothing. */
    private static Optional<JsonElement> contentIn(List<Part> parts) {
        List<JsonObject> pieces = parts.stream().flatMap(part -> partIn(part).stream()).toList();
        if (pieces.isEmpty()) {
            return Optional.empty();
        }
        JsonObject first = pieces.get(0);
        boolean plain = pieces.size() == 1 && first.size() == 2 && first.get("type").equals(new JsonPrimitive("text"));
        return Optional.of(plain ? first.get("text") : Json.array(pieces));
    }

    private static Optional<JsonObject> partIn(Part part) {
        JsonObject written;
        switch (part.getKindCase()) {
            case TEXT -> {
                written = Json.object("type", "text");
                written.addProperty("text", part.getText().getText());
            }
            case IMAGE -> {
                ImagePart image = part.getImage();
                String url = image.hasUri() ? image.getUri() : DataUrl.of(image.getMimeType(), image.getData());
                JsonObject body = Json.object("url", url);
                if (!image.getDetail().isEmpty()) {
                    body.addProperty("detail", image.getDetail());
                }
                written = Json.object("type", "image_url");
                written.add("image_url", body);
            }
            case FILE -> {
                FilePart file = part.getFile();
                JsonObject body = new JsonObject();
                if (!file.getName().isEmpty()) {
                    body.addProperty("filename", file.getName());
                }
                if (file.getData().isEmpty()) {
                    body.addProperty("file_id", file.getUri());
                } else {
                    body.addProperty("file_data", DataUrl.of(file.getMimeType(), file.getData()));
                }
                written = Json.object("type", "file");
                written.add("file", body);
            }
            case OPAQUE -> {
                boolean ours = part.getOpaque().getFormat().equals(FORMAT) && !isRefusal(part);
                return ours ? Optional.of(Json.membersOf(part.getOpaque().getJson())) : Optional.empty();
            }
            default -> {
                return Optional.empty();
            }
        }
        return Optional.of(Json.more(written, part.getProviderMetadataJson()));
    }

    private static JsonObject callIn(Part part) {
        ToolCallPart call = part.getToolCall();
        JsonObject more = Json.membersOf(part.getProviderMetadataJson());
        boolean custom = new JsonPrimitive("custom").equals(more.get("type"));
        JsonObject body = Json.object("name", call.getName());
        body.addProperty(custom ? "input" : "arguments", call.getArgumentsJson().toStringUtf8());
        JsonObject written = Json.object("id", call.getCallId());
        if (!custom) {
            written.addProperty("type", "function");
        }
        written.add(custom ? "custom" : "function", body);
        return Json.more(written, part.getProviderMetadataJson());
    }

    private static boolean isRefusal(Part part) {
        return part.getOpaque().getFormat().equals(FORMAT) && part.getOpaque().getType().equals("refusal");
    }

    private static Part opaque(String type, JsonObject json) {
        OpaquePart.Builder part = OpaquePart.newBuilder().setFormat(FORMAT).setType(type).setJson(Json.bytes(json));
        return Part.newBuilder().setOpaque(part).build();
    }
}
