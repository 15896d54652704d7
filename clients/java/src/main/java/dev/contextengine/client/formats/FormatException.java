package dev.contextengine.client.formats;

/** JSON that is not of the format it should be. The message names the place and what would be right there. */
public final class FormatException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    FormatException(String path, String problem) {
        super(path + ": " + problem);
    }
}
