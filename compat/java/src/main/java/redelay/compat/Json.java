package redelay.compat;

import java.util.Optional;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.datatype.jdk8.Jdk8Module;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;

/** The JSON of the protocol's lines. The codecs use mappers of their own, which Redisson sets up. */
final class Json {
    static final ObjectMapper MAPPER = JsonMapper.builder()
            .addModules(new Jdk8Module(), new JavaTimeModule())
            .disable(SerializationFeature.WRITE_DATE_TIMESTAMPS_AS_NANOSECONDS)
            // A field holds one JSON text. Without these, a forgotten tab or quote would be accepted as half of a value.
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            // Otherwise a BigDecimal 1.30 is printed as 1.3.
            .nodeFactory(new JsonNodeFactory(true))
            // A null stays null, as in Java code that never set the field. The module would turn it into an empty Optional.
            .withConfigOverride(Optional.class, field -> field.setSetterInfo(JsonSetter.Value.forValueNulls(Nulls.SKIP)))
            .build();

    private Json() {
    }
}
