package redelay.compat;

import java.util.Map;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.deser.DeserializationProblemHandler;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Values of the codecs that write any Java object.
 *
 * <p>Plain JSON becomes String, Integer (Long or BigInteger if needed), Double, Boolean, ArrayList, LinkedHashMap and null,
 * which is Jackson's default. An object with a {@code @class} becomes an instance of that class.
 */
final class JavaValues implements Values {
    private static final String CLASS = "@class";

    private final ObjectReader reader = Json.MAPPER.reader().withHandler(new DeserializationProblemHandler() {
        @Override
        public boolean handleUnknownProperty(
                DeserializationContext context, JsonParser parser, JsonDeserializer<?> deserializer, Object bean, String name) {
            return name.equals(CLASS);
        }
    });

    @Override
    public Object read(String json) throws JsonProcessingException {
        Object plain = reader.forType(Object.class).readValue(json);
        if (plain instanceof Map<?, ?> fields && fields.get(CLASS) instanceof String name) {
            return reader.forType(classOf(name)).readValue(json);
        }
        return plain;
    }

    private static Class<?> classOf(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            throw new IllegalArgumentException("no class " + name, e);
        }
    }

    @Override
    public JsonNode write(Object value) {
        JsonNode json = Json.MAPPER.valueToTree(value);
        String name = value.getClass().getName();
        if (!json.isObject() || name.startsWith("java.")) {
            return json;
        }
        ObjectNode named = Json.MAPPER.createObjectNode().put(CLASS, name);
        named.setAll((ObjectNode) json);
        return named;
    }
}
