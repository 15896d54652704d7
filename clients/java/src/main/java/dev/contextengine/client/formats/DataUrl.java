package dev.contextengine.client.formats;

import com.google.protobuf.ByteString;
import java.util.Optional;

/**
 * A base64 data URL.
 *
 * @param mimeType its media type
 * @param data what it holds
 */
record DataUrl(String mimeType, ByteString data) {
    private static final String HEAD = "data:";
    private static final String TAIL = ";base64";

    /** Empty: it is another URL. */
    static Optional<DataUrl> parse(String url) {
        int comma = url.indexOf(',');
        String head = comma < 0 ? "" : url.substring(0, comma);
        if (!head.startsWith(HEAD) || !head.endsWith(TAIL)) {
            return Optional.empty();
        }
        String mimeType = head.substring(HEAD.length(), head.length() - TAIL.length());
        return Json.base64(url.substring(comma + 1)).map(data -> new DataUrl(mimeType, data));
    }

    static String of(String mimeType, ByteString data) {
        return HEAD + mimeType + TAIL + "," + Json.base64(data);
    }
}
