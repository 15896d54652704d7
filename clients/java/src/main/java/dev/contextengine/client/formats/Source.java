package dev.contextengine.client.formats;

import com.google.gson.JsonObject;
import com.google.protobuf.ByteString;
import dev.contextengine.v1.FilePart;
import dev.contextengine.v1.ImagePart;

/**
 * Where a picture or document of Anthropic is.
 *
 * @param mimeType its media type; empty: not said
 * @param data its bytes; null: they are elsewhere
 * @param uri where they are; null: they are here
 */
record Source(String mimeType, ByteString data, String uri) {
    /** Null: in no way that is known here. */
    static Source of(Node source) {
        if (source == null) {
            return null;
        }
        String mimeType = source.text("media_type");
        return switch (source.text("type")) {
            case "base64" -> new Source(mimeType, base64(source), null);
            case "text" -> new Source(mimeType, ByteString.copyFromUtf8(source.text("data")), null);
            case "url" -> new Source(mimeType, null, source.required("url"));
            case "file" -> new Source(mimeType, null, source.required("file_id"));
            default -> null;
        };
    }

    private static ByteString base64(Node source) {
        return Json.base64(source.text("data")).orElseThrow(() -> source.error("data", "base64 is needed"));
    }

    ImagePart.Builder image() {
        ImagePart.Builder part = ImagePart.newBuilder().setMimeType(mimeType);
        return data == null ? part.setUri(uri) : part.setData(data);
    }

    FilePart.Builder file() {
        FilePart.Builder part = FilePart.newBuilder().setMimeType(mimeType);
        return data == null ? part.setUri(uri) : part.setData(data);
    }

    /** A source elsewhere, as the API writes it. */
    static JsonObject at(String uri) {
        JsonObject source = Json.object("type", "url");
        source.addProperty("url", uri);
        return source;
    }

    /** A source of bytes, as the API writes it. */
    static JsonObject in(String mimeType, ByteString data) {
        boolean text = mimeType.equals("text/plain");
        JsonObject source = Json.object("type", text ? "text" : "base64");
        source.addProperty("media_type", mimeType);
        source.addProperty("data", text ? data.toStringUtf8() : Json.base64(data));
        return source;
    }
}
