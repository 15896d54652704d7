package dev.contextengine.client;

/**
 * A field of a request that is wrong.
 *
 * @param field its path, for example {@code message.role}
 * @param description what would be right
 */
public record Violation(String field, String description) {}
