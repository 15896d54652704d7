package dev.contextengine.client;

import com.google.protobuf.ByteString;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.Role;
import dev.contextengine.v1.TextPart;
import dev.contextengine.v1.ToolCallPart;
import dev.contextengine.v1.ToolResultPart;
import java.util.ArrayList;
import java.util.List;

/** Makes messages, each with a new id, and reads their texts. */
public final class Messages {
    private Messages() {}

    /**
     * A message of the user.
     *
     * @param text what the user says
     * @return the message
     */
    public static Message user(String text) {
        return message(Role.ROLE_USER, text(text));
    }

    /**
     * Instructions of the system. Where they lead the session, every assembly shows them verbatim.
     *
     * @param text the instructions
     * @return the message
     */
    public static Message system(String text) {
        return message(Role.ROLE_SYSTEM, text(text));
    }

    /**
     * A reply of the model.
     *
     * @param text its text; empty: none
     * @param calls its tool calls
     * @return the message
     */
    public static Message assistant(String text, ToolCallPart... calls) {
        List<Part> parts = new ArrayList<>();
        if (!text.isEmpty()) {
            parts.add(text(text));
        }
        for (ToolCallPart call : calls) {
            parts.add(Part.newBuilder().setToolCall(call).build());
        }
        return message(Role.ROLE_ASSISTANT, parts.toArray(Part[]::new));
    }

    /**
     * A call for {@link #assistant}.
     *
     * @param callId names the call; its result says it again
     * @param name the tool
     * @param argumentsJson the arguments as the model wrote them
     * @return the call
     */
    public static ToolCallPart toolCall(String callId, String name, String argumentsJson) {
        return ToolCallPart.newBuilder()
                .setCallId(callId)
                .setName(name)
                .setArgumentsJson(ByteString.copyFromUtf8(argumentsJson))
                .build();
    }

    /**
     * A tool's answer to a call.
     *
     * @param callId the call
     * @param text the answer
     * @return the message
     */
    public static Message toolResult(String callId, String text) {
        ToolResultPart result = ToolResultPart.newBuilder().setCallId(callId).addParts(text(text)).build();
        return message(Role.ROLE_TOOL, Part.newBuilder().setToolResult(result).build());
    }

    /**
     * A part of plain text.
     *
     * @param text the text
     * @return the part
     */
    public static Part text(String text) {
        return Part.newBuilder().setText(TextPart.newBuilder().setText(text)).build();
    }

    /**
     * The text of a message.
     *
     * @param message any message
     * @return its text parts and those of its tool results, joined by line ends; no reasoning
     */
    public static String textOf(Message message) {
        List<String> found = new ArrayList<>();
        collectTexts(message.getPartsList(), found);
        return String.join("\n", found);
    }

    private static void collectTexts(List<Part> parts, List<String> into) {
        for (Part part : parts) {
            if (part.hasText()) {
                into.add(part.getText().getText());
            } else if (part.hasToolResult()) {
                collectTexts(part.getToolResult().getPartsList(), into);
            }
        }
    }

    private static Message message(Role role, Part... parts) {
        return Message.newBuilder().setId(Ids.newId()).setRole(role).addAllParts(List.of(parts)).build();
    }
}
