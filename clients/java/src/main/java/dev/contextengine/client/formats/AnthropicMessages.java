package dev.contextengine.client.formats;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
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
import dev.contextengine.v1.Usage;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/** Anthropic Messages: the {@code system} and the messages of a request, as JSON text. */
public final class AnthropicMessages {
    /** The name of the format in {@code Message.native}. */
    public static final String FORMAT = "anthropic.messages";

    private AnthropicMessages() {}

    /**
     * Reads the messages of a request without instructions.
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
            found.add(messageOf(Json.parseObject(json, path)).setNative(original(json, path)).build());
        }
        return found;
    }

    /**
     * Reads the messages of a request. A user message of tool results alone is a tool message.
     *
     * @param messages each message's JSON
     * @param system the JSON of {@code system}, a string or a list of blocks; it becomes a leading system message
     * @return messages as of {@link #read(List)}
     * @throws FormatException where one is no such message
     */
    public static List<Message> read(List<String> messages, String system) {
        JsonObject holder = new JsonObject();
        holder.add("system", Json.parse(system, "system"));
        List<Message> found = new ArrayList<>();
        found.add(Message.newBuilder()
                .setRole(Role.ROLE_SYSTEM)
                .addAllParts(blocksOf(new Node(holder, ""), "system"))
                .setNative(original(system, "system"))
                .build());
        found.addAll(read(messages));
        return found;
    }

    private static Native original(String json, String path) {
        return Native.newBuilder().setFormat(FORMAT).setJson(Json.original(json, path)).build();
    }

    private static Message.Builder messageOf(Node node) {
        String role = node.required("role");
        List<Part> parts = blocksOf(node, "content");
        Message.Builder message = Message.newBuilder().addAllParts(parts);
        if (role.equals("assistant")) {
            // A reply kept as the API gave it says more than a request may.
            message.setRole(Role.ROLE_ASSISTANT)
                    .setApi("anthropic-messages")
                    .setId(node.text("id"))
                    .setModel(node.text("model"))
                    .setStopReason(node.text("stop_reason"));
            Node usage = node.node("usage");
            return usage == null ? message : message.setUsage(usageOf(usage));
        }
        if (role.equals("system")) {
            // Instructions that hold from there on stand among the messages.
            return message.setRole(Role.ROLE_SYSTEM);
        }
        if (!role.equals("user")) {
            throw node.error("role", "user, assistant or system is needed");
        }
        boolean answers = !parts.isEmpty() && parts.stream().allMatch(Part::hasToolResult);
        return message.setRole(answers ? Role.ROLE_TOOL : Role.ROLE_USER);
    }

    private static List<Part> blocksOf(Node node, String key) {
        Optional<String> text = node.string(key);
        if (text.isPresent()) {
            return List.of(Messages.text(text.get()));
        }
        if (!(node.get(key) instanceof JsonArray)) {
            throw node.error(key, "a string or a list of blocks is needed");
        }
        return node.nodes(key).stream().map(AnthropicMessages::blockOf).toList();
    }

    private static Part blockOf(Node node) {
        String type = node.required("type");
        Source source = type.equals("image") || type.equals("document") ? Source.of(node.node("source")) : null;
        Part.Builder part = Part.newBuilder();
        switch (type) {
            case "text" -> {
                return Messages.text(node.text("text")).toBuilder()
                        .setProviderMetadataJson(node.rest("type", "text"))
                        .build();
            }
            case "thinking" -> part.setReasoning(ReasoningPart.newBuilder()
                            .setText(node.text("thinking"))
                            .setSignature(ByteString.copyFromUtf8(node.text("signature"))))
                    .setProviderMetadataJson(node.rest("type", "thinking", "signature"));
            case "redacted_thinking" -> part.setReasoning(ReasoningPart.newBuilder()
                            .setRedactedData(ByteString.copyFromUtf8(node.required("data"))))
                    .setProviderMetadataJson(node.rest("type", "data"));
            case "tool_use" -> part.setToolCall(ToolCallPart.newBuilder()
                            .setCallId(node.required("id"))
                            .setName(node.required("name"))
                            .setArgumentsJson(
                                    Json.bytes(Objects.requireNonNullElseGet(node.get("input"), JsonObject::new))))
                    .setProviderMetadataJson(node.rest("type", "id", "name", "input"));
            case "tool_result" -> part.setToolResult(ToolResultPart.newBuilder()
                            .setCallId(node.required("tool_use_id"))
                            .setIsError(node.isTrue("is_error"))
                            .addAllParts(node.get("content") == null ? List.of() : blocksOf(node, "content")))
                    .setProviderMetadataJson(node.rest("type", "tool_use_id", "content", "is_error"));
            default -> {
                if (source == null) {
                    return opaque(type, node.value());
                }
                if (type.equals("image")) {
                    return part.setImage(source.image()).setProviderMetadataJson(node.rest("type", "source")).build();
                }
                part.setFile(source.file().setName(node.text("title")))
                        .setProviderMetadataJson(node.rest("type", "source", "title"));
            }
        }
        return part.build();
    }

    private static Usage usageOf(Node node) {
        Usage.Builder usage = Usage.newBuilder();
        node.integer("input_tokens").ifPresent(usage::setInputTokens);
        node.integer("output_tokens").ifPresent(usage::setOutputTokens);
        node.integer("cache_read_input_tokens").ifPresent(usage::setCacheReadTokens);
        node.integer("cache_creation_input_tokens").ifPresent(usage::setCacheWriteTokens);
        Node written = node.node("cache_creation");
        if (written != null) {
            written.integer("ephemeral_1h_input_tokens").ifPresent(usage::setCacheWrite1HTokens);
        }
        return usage.build();
    }

    private static Part opaque(String type, JsonObject json) {
        OpaquePart.Builder part = OpaquePart.newBuilder().setFormat(FORMAT).setType(type).setJson(Json.bytes(json));
        return Part.newBuilder().setOpaque(part).build();
    }

    /**
     * Writes the conversation as a request says it. What came from Anthropic comes back as it was. Leading instructions become
     * {@code system}, later ones a user's text, unless they came as such and may stand where they do. Tool results are a user's;
     * those that follow each other share a message, as the API wants the results of parallel calls, unless they came from
     * Anthropic apart. What the format cannot say is left out, and a message of nothing else with it.
     *
     * @param messages any messages
     * @return the conversation
     */
    public static AnthropicRequest write(List<Message> messages) {
        List<String> system = new ArrayList<>();
        List<Turn> turns = new ArrayList<>();
        boolean answers = false;
        boolean made = true;
        for (Message message : messages) {
            boolean instructs = message.getRole() == Role.ROLE_SYSTEM || message.getRole() == Role.ROLE_DEVELOPER;
            JsonElement content = contentIn(message);
            JsonArray blocks = content instanceof JsonArray list ? list : new JsonArray();
            if (content == null || content.equals(new JsonPrimitive("")) || content == blocks && blocks.isEmpty()) {
                continue;
            }
            boolean among = instructs && cameAmong(message);
            boolean before = answers;
            boolean own = made;
            answers = hasResults(message);
            made = !message.getNative().getFormat().equals(FORMAT);
            if (instructs && !among && turns.isEmpty()) {
                blocks.forEach(block -> system.add(Json.compact(block)));
            } else if (before && answers && (own || made)) {
                turns.add(turns.remove(turns.size() - 1).with(blocks));
                made = true;
            } else {
                String role = message.getRole() == Role.ROLE_ASSISTANT ? "assistant" : "user";
                turns.add(new Turn(among ? "system" : role, content));
            }
        }
        return new AnthropicRequest(system, placed(turns));
    }

    /** Whether a message answers calls. A model's own may hold what its provider's tools found. */
    static boolean hasResults(Message message) {
        return switch (message.getRole()) {
            case ROLE_ASSISTANT, ROLE_SYSTEM, ROLE_DEVELOPER -> false;
            default -> message.getPartsList().stream().anyMatch(Part::hasToolResult);
        };
    }

    /** A message before it is written. */
    private record Turn(String role, JsonElement content) {
        /** The same with more blocks, results before all others, as the API wants them (Anthropic, Handle tool calls). */
        Turn with(JsonArray blocks) {
            JsonArray results = new JsonArray();
            JsonArray others = new JsonArray();
            for (JsonArray some : List.of(content.getAsJsonArray(), blocks)) {
                some.forEach(block -> (isResult(block) ? results : others).add(block));
            }
            results.addAll(others);
            return new Turn(role, results);
        }

        private static boolean isResult(JsonElement block) {
            return block instanceof JsonObject object && new JsonPrimitive("tool_result").equals(object.get("type"));
        }
    }

    /**
     * Writes messages. One of {@code system} is the user's where the API does not take it: it may stand behind the user's, and
     * before the model's or last (Anthropic, mid-conversation system messages, Limitations).
     */
    private static List<String> placed(List<Turn> turns) {
        List<String> written = new ArrayList<>();
        String before = "";
        for (int at = 0; at < turns.size(); at++) {
            Turn turn = turns.get(at);
            String after = at + 1 < turns.size() ? turns.get(at + 1).role() : "assistant";
            boolean stands = before.equals("user") && after.equals("assistant");
            before = turn.role().equals("system") && !stands ? "user" : turn.role();
            JsonObject made = Json.object("role", before);
            made.add("content", turn.content());
            written.add(Json.compact(made));
        }
        return written;
    }

    /** Whether instructions came as a message of their own, and not before all messages. */
    private static boolean cameAmong(Message message) {
        return message.getNative().getFormat().equals(FORMAT)
                && Json.parse(message.getNative().getJson().toStringUtf8(), "native") instanceof JsonObject;
    }

    /** What a message says: its original content, or blocks of its parts. Null: nothing. */
    private static JsonElement contentIn(Message message) {
        if (message.getNative().getFormat().equals(FORMAT)) {
            JsonElement value = Json.parse(message.getNative().getJson().toStringUtf8(), "native");
            if (value instanceof JsonObject object) {
                return object.get("content");
            }
            // The original of instructions; else a list is the messages that a reply came in.
            boolean instructs = message.getRole() == Role.ROLE_SYSTEM || message.getRole() == Role.ROLE_DEVELOPER;
            if (instructs || !(value instanceof JsonArray)) {
                return value instanceof JsonArray ? value : Json.array(List.of(textIn(value.getAsString())));
            }
        }
        return blocksIn(message.getPartsList());
    }

    private static JsonArray blocksIn(List<Part> parts) {
        JsonArray blocks = new JsonArray();
        for (Part part : parts) {
            if (part.hasOpaque() && part.getOpaque().getFormat().equals(FORMAT)) {
                blocks.add(Json.membersOf(part.getOpaque().getJson()));
            }
            blockIn(part).ifPresent(block -> blocks.add(Json.more(block, part.getProviderMetadataJson())));
        }
        return blocks;
    }

    private static Optional<JsonObject> blockIn(Part part) {
        return switch (part.getKindCase()) {
            // The API refuses empty texts.
            case TEXT -> Optional.of(part.getText().getText()).filter(text -> !text.isEmpty()).map(AnthropicMessages::textIn);
            case REASONING -> reasoningIn(part.getReasoning());
            case TOOL_CALL -> {
                JsonObject block = Json.object("type", "tool_use");
                block.addProperty("id", part.getToolCall().getCallId());
                block.addProperty("name", part.getToolCall().getName());
                block.add("input", inputIn(part.getToolCall().getArgumentsJson()));
                yield Optional.of(block);
            }
            case TOOL_RESULT -> Optional.of(resultIn(part.getToolResult()));
            case IMAGE -> {
                ImagePart image = part.getImage();
                JsonObject block = Json.object("type", "image");
                block.add("source", image.hasUri() ? Source.at(image.getUri()) : Source.in(image.getMimeType(), image.getData()));
                yield Optional.of(block);
            }
            case FILE -> {
                FilePart file = part.getFile();
                JsonObject block = Json.object("type", "document");
                block.add("source", file.hasUri() ? Source.at(file.getUri()) : Source.in(file.getMimeType(), file.getData()));
                if (!file.getName().isEmpty()) {
                    block.addProperty("title", file.getName());
                }
                yield Optional.of(block);
            }
            default -> Optional.empty();
        };
    }

    private static JsonObject textIn(String text) {
        JsonObject block = Json.object("type", "text");
        block.addProperty("text", text);
        return block;
    }

    private static Optional<JsonObject> reasoningIn(ReasoningPart reasoning) {
        if (!reasoning.getRedactedData().isEmpty()) {
            JsonObject block = Json.object("type", "redacted_thinking");
            block.addProperty("data", reasoning.getRedactedData().toStringUtf8());
            return Optional.of(block);
        }
        if (reasoning.getSignature().isEmpty()) {
            return Optional.empty();
        }
        JsonObject block = Json.object("type", "thinking");
        block.addProperty("thinking", reasoning.getText());
        block.addProperty("signature", reasoning.getSignature().toStringUtf8());
        return Optional.of(block);
    }

    private static JsonObject resultIn(ToolResultPart result) {
        JsonObject block = Json.object("type", "tool_result");
        block.addProperty("tool_use_id", result.getCallId());
        JsonArray content = blocksIn(result.getPartsList());
        if (!content.isEmpty()) {
            block.add("content", content);
        }
        if (result.getIsError()) {
            block.addProperty("is_error", true);
        }
        return block;
    }

    /** The arguments as the object that the API insists on; what is none stands under {@code arguments}. */
    private static JsonObject inputIn(ByteString arguments) {
        if (arguments.isEmpty()) {
            return new JsonObject();
        }
        JsonElement value;
        try {
            value = Json.parse(arguments.toStringUtf8(), "arguments");
        } catch (FormatException text) {
            value = new JsonPrimitive(arguments.toStringUtf8());
        }
        if (value instanceof JsonObject object) {
            return object;
        }
        JsonObject input = new JsonObject();
        input.add("arguments", value);
        return input;
    }
}
