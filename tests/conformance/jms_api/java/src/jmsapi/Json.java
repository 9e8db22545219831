package jmsapi;

import java.util.List;
import java.util.stream.Collectors;

/** Writes objects of texts, whole numbers and lists of texts, each in one line. */
final class Json {
    private Json() {
    }

    /** Return the object with these names and values, which alternate. */
    static String object(Object... parts) {
        StringBuilder text = new StringBuilder("{");
        for (int place = 0; place < parts.length; place += 2) {
            text.append(place == 0 ? "" : ", ").append(value(parts[place])).append(": ").append(value(parts[place + 1]));
        }
        return text.append('}').toString();
    }

    private static String value(Object value) {
        if (value instanceof Number) {
            return value.toString();
        }
        if (value instanceof List) {
            return ((List<?>) value).stream().map(Json::value).collect(Collectors.joining(", ", "[", "]"));
        }
        StringBuilder text = new StringBuilder("\"");
        for (char each : String.valueOf(value).toCharArray()) {
            if (each == '"' || each == '\\') {
                text.append('\\').append(each);
            } else if (each < ' ' || each > '~') {
                text.append(String.format("\\u%04x", (int) each));
            } else {
                text.append(each);
            }
        }
        return text.append('"').toString();
    }
}
