package redelay.compat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;

/** The way between a line's JSON text and the Java objects that a codec takes and gives. */
public interface Values {
    /** @throws IllegalArgumentException if the codec has no such value */
    Object read(String json) throws JsonProcessingException;

    /** @param value never null */
    JsonNode write(Object value);
}
