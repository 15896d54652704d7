package dev.contextengine.client.formats;

import java.util.List;

/**
 * The part of an Anthropic Messages request that says the conversation.
 *
 * @param system the blocks of {@code system}, each as JSON text; none where there are no leading instructions
 * @param messages the messages, each as JSON text
 */
public record AnthropicRequest(List<String> system, List<String> messages) {
    /**
     * The request's members.
     *
     * @return a JSON object of {@code messages}, and of {@code system} where there is any
     */
    public String toJson() {
        String head = system.isEmpty() ? "" : "\"system\":[" + String.join(",", system) + "],";
        return "{" + head + "\"messages\":[" + String.join(",", messages) + "]}";
    }
}
