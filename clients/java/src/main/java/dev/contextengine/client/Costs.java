package dev.contextengine.client;

import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.AssembleResponse;
import dev.contextengine.v1.BudgetReport;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.ToolDefinition;
import dev.contextengine.v1.WindowBudget;
import java.util.List;

/** What a context costs where nobody counts its tokens: bounds from bytes, and the room that a request leaves. */
final class Costs {
    /** More than any provider's frame of a message. */
    private static final long MESSAGE_TOKENS = 16;

    /** More than a picture costs. */
    private static final long IMAGE_TOKENS = 2_000;

    // The algebra of the service for a window without parts.
    private static final long WINDOW = 128_000;
    private static final long OUTPUT_RESERVE = 8_192;
    private static final long SAFETY_MARGIN = 2_048;
    private static final double SAFETY_SHARE = 0.05;
    private static final double ROT_SHARE = 0.25;

    private Costs() {}

    /** The most tokens that a message can have: one for each byte of its encoding, since no token is less than a byte. */
    static long bound(Message message) {
        Message counted = Message.newBuilder()
                .setRoleValue(message.getRoleValue())
                .setCustomRole(message.getCustomRole())
                .setName(message.getName())
                .addAllParts(message.getPartsList())
                .build();
        return counted.getSerializedSize() + MESSAGE_TOKENS + media(message.getPartsList());
    }

    /** The tokens that a request leaves for items, in the model's tokens. last: the last good reply; null: none. */
    static long room(AssembleRequest request, AssembleResponse last) {
        BudgetReport report = last == null ? BudgetReport.getDefaultInstance() : last.getBudget();
        WindowBudget window = request.getBudget().getWindow();
        long left;
        if (request.getBudget().hasMessageTokens()) {
            left = request.getBudget().getMessageTokens() - report.getSystemPromptAddition();
        } else if (last == null || window.hasWindow()) {
            left = available(request, window) - report.getSystemPromptAddition();
        } else {
            left = report.getMessages() + report.getPrompt();
        }
        if (request.getPromptCount() > 0) {
            Message prompt = Message.newBuilder().addAllParts(request.getPromptList()).build();
            left -= prompt.getSerializedSize() + media(request.getPromptList());
        }
        return left;
    }

    /** What a window leaves after its parts. */
    private static long available(AssembleRequest request, WindowBudget given) {
        long window = given.hasWindow() ? given.getWindow() : WINDOW;
        long system = given.hasSystemPromptText() ? given.getSystemPromptTextBytes().size() : given.getSystemPromptTokens();
        long tools = given.hasToolTokens()
                ? given.getToolTokens()
                : sizes(given.getToolsCount() > 0 ? given.getToolsList() : request.getToolsList());
        long output = given.hasOutputReserve() ? given.getOutputReserve() : OUTPUT_RESERVE;
        long margin = given.hasSafetyMargin()
                ? given.getSafetyMargin()
                : Math.max(SAFETY_MARGIN, (long) Math.ceil(window * SAFETY_SHARE));
        long rot = given.hasRotBuffer() ? given.getRotBuffer() : (long) Math.ceil(window * ROT_SHARE);
        return window - system - tools - output - margin - rot;
    }

    private static long sizes(List<ToolDefinition> tools) {
        return tools.stream().mapToLong(ToolDefinition::getSerializedSize).sum();
    }

    /** What pictures and files may cost beyond the bytes that name them. */
    private static long media(List<Part> parts) {
        long total = 0;
        for (Part part : parts) {
            total += switch (part.getKindCase()) {
                case IMAGE -> IMAGE_TOKENS;
                case FILE -> part.getFile().getSizeBytes();
                case TOOL_RESULT -> media(part.getToolResult().getPartsList());
                default -> 0;
            };
        }
        return total;
    }
}
