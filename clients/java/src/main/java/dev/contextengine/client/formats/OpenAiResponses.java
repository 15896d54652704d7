package dev.contextengine.client.formats;

import com.google.gson.JsonArray;
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
import java.util.stream.Collectors;

/** OpenAI Responses: the input items of a request, each as JSON text. */
public final class OpenAiResponses {
    /** The name of the format in {@code Message.native}. */
    public static final String FORMAT = "openai.responses";

    static final Map<String, Role> ROLES = new LinkedHashMap<>();

    static {
        ROLES.put("user", Role.ROLE_USER);
        ROLES.put("assistant", Role.ROLE_ASSISTANT);
        ROLES.put("system", Role.ROLE_SYSTEM);
        ROLES.put("developer", Role.ROLE_DEVELOPER);
    }

    private OpenAiResponses() {}

    /**
     * Reads the input items of a request. Those that one reply of the model is made of (reasoning, then its text, then its calls)
     * become one message.
     *
     * @param items each item's JSON
     * @return messages that keep their originals in {@code native}, one item as it was, several as a list of them; they have no
     *     ids: see {@link dev.contextengine.client.Ids#withIds}
     * @throws FormatException where one is no such item
     */
    public static List<Message> read(List<String> items) {
        List<Message.Builder> found = new ArrayList<>();
        List<List<String>> originals = new ArrayList<>();
        for (int index = 0; index < items.size(); index++) {
            String path = "input[" + index + "]";
            Json.original(items.get(index), path);
            Message.Builder message = messageOf(Json.parseObject(items.get(index), path));
            int last = found.size() - 1;
            if (last >= 0 && goesOn(found.get(last), message)) {
                found.get(last).addAllParts(message.getPartsList());
            } else {
                found.add(message);
                originals.add(new ArrayList<>());
            }
            originals.get(originals.size() - 1).add(items.get(index));
        }
        List<Message> messages = new ArrayList<>();
        for (int index = 0; index < found.size(); index++) {
            List<String> of = originals.get(index);
            String json = of.size() == 1 ? of.get(0) : "[" + String.join(",", of) + "]";
            Native original = Native.newBuilder().setFormat(FORMAT).setJson(ByteString.copyFromUtf8(json)).build();
            messages.add(found.get(index).setNative(original).build());
        }
        return messages;
    }

    /**
     * Writes the input items of a request. What came from Responses comes back as it was; what the format cannot say is left out.
     * A message becomes as many items as it has calls, results and stretches of text. Reasoning is left out where it has not the
     * id of an item of OpenAI's: nobody else's is taken.
     *
     * @param messages the messages
     * @return each item's JSON
     */
    public static List<String> write(List<Message> messages) {
        return new ResponsesWriter().write(messages);
    }

    /** Whether an item belongs to the reply that has begun: calls go on with anything but an answer, text with reasoning only. */
    private static boolean goesOn(Message.Builder before, Message.Builder message) {
        boolean replies = before.getRole() == Role.ROLE_ASSISTANT && message.getRole() == Role.ROLE_ASSISTANT;
        if (!replies || before.getPartsCount() == 0 || message.getPartsCount() == 0) {
            return false;
        }
        return message.getParts(0).hasToolCall() || before.getPartsList().stream().allMatch(Part::hasReasoning);
    }

    private static Message.Builder messageOf(Node node) {
        String type = node.text("type");
        Message.Builder reply = Message.newBuilder().setRole(Role.ROLE_ASSISTANT);
        switch (type) {
            case "", "message" -> {
                Role role = ROLES.get(node.required("role"));
                if (role == null) {
                    throw node.error("role", "one of " + String.join(", ", ROLES.keySet()) + " is needed");
                }
                return Message.newBuilder().setRole(role).addAllParts(contentOf(node, "content"));
            }
            case "reasoning" -> {
                return reply.addParts(reasoningOf(node));
            }
            case "function_call" -> {
                return reply.addParts(callOf(node, "arguments", "type"));
            }
            case "custom_tool_call" -> {
                return reply.addParts(callOf(node, "input", "input"));
            }
            case "function_call_output", "custom_tool_call_output" -> {
                ToolResultPart.Builder result = ToolResultPart.newBuilder()
                        .setCallId(node.required("call_id"))
                        .addAllParts(contentOf(node, "output"));
                return Message.newBuilder().setRole(Role.ROLE_TOOL).addParts(Part.newBuilder()
                        .setToolResult(result)
                        .setProviderMetadataJson(node.rest("type", "call_id", "output", "id", "status")));
            }
            default -> {
                return Message.newBuilder().setRole(whose(node, type)).addParts(opaque(type, node.value()));
            }
        }
    }

    /** Who an item of a kind that is not known here is from: who it says, of what a host sets the developer, else the model. */
    private static Role whose(Node node, String type) {
        Role otherwise = type.equals("configuration_update") ? Role.ROLE_DEVELOPER : Role.ROLE_ASSISTANT;
        return ROLES.getOrDefault(node.text("role"), otherwise);
    }

    private static Part reasoningOf(Node node) {
        List<Node> summary = node.nodes("summary");
        ReasoningPart.Builder thought = ReasoningPart.newBuilder()
                .setText(summary.stream().map(text -> text.text("text")).collect(Collectors.joining("\n\n")))
                .setRedactedData(ByteString.copyFromUtf8(node.text("encrypted_content")))
                .setItemId(node.text("id"));
        // What several texts were joined of is kept beside them.
        ByteString rest = summary.size() < 2
                ? node.rest("type", "id", "encrypted_content", "summary")
                : node.rest("type", "id", "encrypted_content");
        return Part.newBuilder().setReasoning(thought).setProviderMetadataJson(rest).build();
    }

    /** A tool call. A custom tool's input is text of any kind, stands where arguments stand, and keeps its type beside it. */
    private static Part callOf(Node node, String given, String known) {
        ToolCallPart.Builder call = ToolCallPart.newBuilder()
                .setCallId(node.required("call_id"))
                .setName(node.required("name"))
                .setArgumentsJson(ByteString.copyFromUtf8(node.text(given)))
                .setItemId(node.text("id"))
                .setNamespace(node.text("namespace"));
        ByteString rest = known.equals(given)
                ? node.rest("call_id", "name", given, "id", "namespace")
                : node.rest("call_id", "name", given, "id", "namespace", known);
        return Part.newBuilder().setToolCall(call).setProviderMetadataJson(rest).build();
    }

    private static List<Part> contentOf(Node node, String key) {
        if (node.string(key).isEmpty() && !(node.get(key) instanceof JsonArray)) {
            throw node.error(key, "a string or a list of parts is needed");
        }
        return node.string(key)
                .map(text -> List.of(Messages.text(text)))
                .orElseGet(() -> node.nodes(key).stream().map(OpenAiResponses::pieceOf).toList());
    }

    private static Part pieceOf(Node node) {
        String type = node.required("type");
        switch (type) {
            case "input_text", "output_text" -> {
                return Messages.text(node.text("text")).toBuilder()
                        .setProviderMetadataJson(node.rest("type", "text"))
                        .build();
            }
            case "input_image" -> {
                Source source = sourceOf(node, "image_url");
                ImagePart.Builder image = source.image().setDetail(node.text("detail"));
                ByteString rest = node.rest("type", "image_url", "file_id", "detail");
                return Part.newBuilder().setImage(image).setProviderMetadataJson(rest).build();
            }
            case "input_file" -> {
                Source source = sourceOf(node, node.text("file_data").isEmpty() ? "file_url" : "file_data");
                FilePart.Builder file = source.file().setName(node.text("filename"));
                ByteString rest = node.rest("type", "file_data", "file_url", "file_id", "filename");
                return Part.newBuilder().setFile(file).setProviderMetadataJson(rest).build();
            }
            default -> {
                return opaque(type, node.value());
            }
        }
    }

    /** A medium by its data URL, its address, or its id with the provider. */
    private static Source sourceOf(Node node, String key) {
        String url = node.text(key);
        DataUrl held = DataUrl.parse(url).orElse(null);
        if (held != null) {
            return new Source(held.mimeType(), held.data(), null);
        }
        if (url.startsWith("data:") && url.contains(";base64,")) {
            throw node.error(key, "base64 is needed");
        }
        return new Source("", null, url.isEmpty() ? node.text("file_id") : url);
    }

    private static Part opaque(String type, JsonObject json) {
        OpaquePart.Builder part = OpaquePart.newBuilder().setFormat(FORMAT).setType(type).setJson(Json.bytes(json));
        return Part.newBuilder().setOpaque(part).build();
    }

    /** Whether a member of an object is this text. */
    static boolean is(JsonObject object, String key, String text) {
        return new JsonPrimitive(text).equals(object.get(key));
    }
}
