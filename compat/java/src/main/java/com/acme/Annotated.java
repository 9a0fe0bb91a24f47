package com.acme;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.annotation.JsonAnyGetter;
import com.fasterxml.jackson.annotation.JsonAnySetter;
import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;

/** Classes whose annotations change the order of the properties, or which of them are written. */
public final class Annotated {
    private Annotated() {
    }

    @JsonPropertyOrder({"c", "b"})
    public static class Ordered {
        public int a;
        public String b;
        public Long c;
        public Ordered d;
    }

    public static class Created {
        public int a;
        public final String b;
        public final Long c;
        public Integer d;

        @JsonCreator
        public Created(@JsonProperty("c") Long c, @JsonProperty("b") String b) {
            this.c = c;
            this.b = b;
        }
    }

    @JsonInclude(JsonInclude.Include.ALWAYS)
    public static class Always {
        public Integer a;
        public String b;
        public List<String> c;
        public Map<String, Integer> d;
        public Always e;
    }

    public static class Sometimes {
        public Integer a;
        @JsonInclude(JsonInclude.Include.ALWAYS)
        public String b;
        public String c;
    }

    public static class Extra {
        public String b;
        @JsonAnyGetter
        @JsonAnySetter
        public Map<String, Object> more = new LinkedHashMap<>();
        public String z;
    }
}
