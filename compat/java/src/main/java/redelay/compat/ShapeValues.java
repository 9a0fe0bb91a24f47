package redelay.compat;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import com.example.shop.Shapes;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;

/**
 * The {@link Shapes}, by name. An object that is none of them, class by class and field by field, is written as what it is instead.
 */
final class ShapeValues implements Values {
    private final Map<String, Object> all = Shapes.all();
    private final Map<String, String> names = new HashMap<>();

    ShapeValues() {
        all.forEach((name, value) -> names.put(shown(value), name));
    }

    @Override
    public Object read(String json) throws JsonProcessingException {
        Object value = all.get(Json.MAPPER.readTree(json).textValue());
        if (value == null) {
            throw new IllegalArgumentException("no shape " + json);
        }
        return value;
    }

    @Override
    public JsonNode write(Object value) {
        String shown = shown(value);
        return TextNode.valueOf(names.getOrDefault(shown, shown));
    }

    private static String shown(Object value) {
        if (value == null) {
            return "null";
        }
        Class<?> kind = value.getClass();
        if (value instanceof Map<?, ?> map) {
            return kind.getName() + joined(kind == HashMap.class, map.entrySet().stream()
                    .map(entry -> shown(entry.getKey()) + "=" + shown(entry.getValue())).toList());
        }
        if (value instanceof Collection<?> elements) {
            return kind.getName() + joined(kind == HashSet.class, elements.stream().map(ShapeValues::shown).toList());
        }
        if (kind.isArray()) {
            List<String> elements = new ArrayList<>();
            for (int at = 0; at < Array.getLength(value); at++) {
                elements.add(shown(Array.get(value, at)));
            }
            return kind.getName() + joined(false, elements);
        }
        if (value instanceof Date date) {
            return kind.getName() + " " + date.getTime();
        }
        if (value instanceof Enum || kind.getName().startsWith("java.")) {
            return kind.getName() + " " + value;
        }
        List<String> fields = new ArrayList<>();
        for (Class<?> of = kind; of != Object.class; of = of.getSuperclass()) {
            for (Field field : of.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                    fields.add(field.getName() + "=" + shown(get(field, value)));
                }
            }
        }
        return kind.getName() + joined(false, fields);
    }

    private static Object get(Field field, Object object) {
        try {
            field.setAccessible(true);
            return field.get(object);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A hash has no order. */
    private static String joined(boolean sorted, List<String> parts) {
        return (sorted ? parts.stream().sorted() : parts.stream()).collect(Collectors.joining(", ", "{", "}"));
    }
}
