package dev.contextengine.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.MessageOrBuilder;
import io.grpc.Status;
import java.util.List;
import java.util.Map;

/** Texts that UTF-8 cannot say. Protobuf would write question marks for them. */
final class Texts {
    private Texts() {}

    /** Refuses a request with a text that has half a surrogate pair. */
    static void check(MessageOrBuilder request) {
        String field = unsayable(request, "");
        if (field != null) {
            String why = "has half a surrogate pair, which UTF-8 cannot say: give valid text, or bytes in `native`";
            throw new ContextEngineException.InvalidField(new Failure(
                    Status.Code.INVALID_ARGUMENT, "INVALID_FIELD", field + " " + why,
                    List.of(new Violation(field, why)), Map.of(), null, null));
        }
    }

    /** The path of the first text that UTF-8 cannot say. Null: there is none. */
    private static String unsayable(MessageOrBuilder message, String path) {
        for (Map.Entry<FieldDescriptor, Object> entry : message.getAllFields().entrySet()) {
            FieldDescriptor field = entry.getKey();
            boolean text = field.getJavaType() == FieldDescriptor.JavaType.STRING;
            if (!text && field.getJavaType() != FieldDescriptor.JavaType.MESSAGE) {
                continue;
            }
            String at = path + field.getName();
            if (!field.isRepeated()) {
                String found = unsayableValue(entry.getValue(), at);
                if (found != null) {
                    return found;
                }
                continue;
            }
            List<?> values = (List<?>) entry.getValue();
            for (int i = 0; i < values.size(); i++) {
                String found = unsayableValue(values.get(i), field.isMapField() ? at : at + "[" + i + "]");
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    private static String unsayableValue(Object value, String at) {
        if (value instanceof String text) {
            return hasLoneSurrogate(text) ? at : null;
        }
        return unsayable((MessageOrBuilder) value, at + ".");
    }

    private static boolean hasLoneSurrogate(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (!Character.isSurrogate(text.charAt(i))) {
                continue;
            }
            if (i + 1 == text.length() || !Character.isSurrogatePair(text.charAt(i), text.charAt(i + 1))) {
                return true;
            }
            i++;
        }
        return false;
    }
}
