package redelay.compat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;

/** Converts between the JSON text of a line and the Java objects of a codec. */
public interface Values {
    /** @throws IllegalArgumentException if the codec has no such value */
    Object read(String json) throws JsonProcessingException;

    /** @param value never null */
    JsonNode write(Object value);
}
