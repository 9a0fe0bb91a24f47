package redelay.compat;

import java.util.HexFormat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.TextNode;

/** Values of the codecs that have one type. Strict, so that a typing error in a test does not become another value. */
enum SimpleValues implements Values {
    STRING("a string") {
        @Override
        Object fromJson(JsonNode json) {
            return json.textValue();
        }

        @Override
        public JsonNode write(Object value) {
            return TextNode.valueOf((String) value);
        }
    },

    BYTES("a string of hex digits") {
        @Override
        Object fromJson(JsonNode json) {
            return json.isTextual() ? HexFormat.of().parseHex(json.textValue()) : null;
        }

        @Override
        public JsonNode write(Object value) {
            return TextNode.valueOf(HexFormat.of().formatHex((byte[]) value));
        }
    },

    LONG("an integer of 64 bits") {
        @Override
        Object fromJson(JsonNode json) {
            return json.isIntegralNumber() && json.canConvertToLong() ? json.longValue() : null;
        }

        @Override
        public JsonNode write(Object value) {
            return LongNode.valueOf((Long) value);
        }
    },

    INT("an integer of 32 bits") {
        @Override
        Object fromJson(JsonNode json) {
            return json.isIntegralNumber() && json.canConvertToInt() ? json.intValue() : null;
        }

        @Override
        public JsonNode write(Object value) {
            return IntNode.valueOf((Integer) value);
        }
    },

    DOUBLE("a number") {
        @Override
        Object fromJson(JsonNode json) {
            return json.isNumber() ? json.doubleValue() : null;
        }

        @Override
        public JsonNode write(Object value) {
            return DoubleNode.valueOf((Double) value);
        }
    },

    JSON("a JSON text") {
        @Override
        Object fromJson(JsonNode json) {
            return json;
        }

        @Override
        public JsonNode write(Object value) {
            return (JsonNode) value;
        }
    };

    private final String expected;

    SimpleValues(String expected) {
        this.expected = expected;
    }

    /** Returns the value, or null if the JSON has another type. */
    abstract Object fromJson(JsonNode json);

    @Override
    public Object read(String text) throws JsonProcessingException {
        JsonNode json = Json.MAPPER.readTree(text);
        Object value = json.isMissingNode() ? null : fromJson(json);
        if (value == null) {
            throw new IllegalArgumentException("expected " + expected + ", got " + (text.isEmpty() ? "nothing" : text));
        }
        return value;
    }
}
