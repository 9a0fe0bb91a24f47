package redelay.compat;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;

import com.acme.Annotated.Always;
import com.acme.Annotated.Created;
import com.acme.Annotated.Extra;
import com.acme.Annotated.Ordered;
import com.acme.Annotated.Sometimes;
import com.acme.Clock;
import com.acme.Zoo.Status;
import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.annotation.JsonTypeInfo.As;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectMapper.DefaultTyping;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.jsontype.impl.LaissezFaireSubTypeValidator;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import com.fasterxml.jackson.datatype.jsr310.deser.LocalDateDeserializer;
import com.fasterxml.jackson.datatype.jsr310.deser.LocalDateTimeDeserializer;
import com.fasterxml.jackson.datatype.jsr310.deser.LocalTimeDeserializer;
import com.fasterxml.jackson.datatype.jsr310.ser.LocalDateSerializer;
import com.fasterxml.jackson.datatype.jsr310.ser.LocalDateTimeSerializer;
import com.fasterxml.jackson.datatype.jsr310.ser.LocalTimeSerializer;
import org.redisson.client.codec.Codec;
import org.redisson.codec.JsonJacksonCodec;
import org.redisson.codec.TypedJsonJacksonCodec;

/** Object mappers of an application, and values that they write in their own way. */
final class Mappers {
    private Mappers() {
    }

    /** Null for a name that is not of a mapper. */
    static Codec codec(String name) {
        switch (name) {
            case "mapper-numbers", "json-jackson-jsr310":
                return new JsonJacksonCodec(new ObjectMapper().registerModule(new JavaTimeModule()));
            case "mapper-text", "json-jackson-iso":
                return new JsonJacksonCodec(new ObjectMapper().registerModule(new JavaTimeModule())
                        .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS));
            case "mapper-typed-numbers":
                return new TypedJsonJacksonCodec(Clock.class, typed());
            case "mapper-typed-text":
                return new TypedJsonJacksonCodec(Clock.class, typed().disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS));
            case "mapper-property":
                return new TypedJsonJacksonCodec(Object.class, typed(DefaultTyping.NON_FINAL, As.PROPERTY));
            case "mapper-abstract":
                return new TypedJsonJacksonCodec(Object.class, typed(DefaultTyping.OBJECT_AND_NON_CONCRETE, As.WRAPPER_ARRAY));
            case "mapper-abstract-property":
                return new TypedJsonJacksonCodec(Object.class, typed(DefaultTyping.OBJECT_AND_NON_CONCRETE, As.PROPERTY));
            case "mapper-everything":
                return new TypedJsonJacksonCodec(Object.class, typed(DefaultTyping.EVERYTHING, As.WRAPPER_ARRAY));
            case "mapper-everything-property":
                return new TypedJsonJacksonCodec(Object.class, typed(DefaultTyping.EVERYTHING, As.PROPERTY));
            case "mapper-wrapper":
                return new TypedJsonJacksonCodec(Object.class, wrapper(new JavaTimeModule()));
            case "wrapper-array":
                return new TypedJsonJacksonCodec(Object.class, wrapper(seconds()));
            case "mapper-patterns":
                return new TypedJsonJacksonCodec(Object.class, wrapper(patterns()));
            default:
                return null;
        }
    }

    private static ObjectMapper typed() {
        return new ObjectMapper().registerModule(new JavaTimeModule());
    }

    private static ObjectMapper typed(DefaultTyping typing, As as) {
        return typed().setVisibility(PropertyAccessor.ALL, JsonAutoDetect.Visibility.ANY)
                .activateDefaultTyping(LaissezFaireSubTypeValidator.instance, typing, as);
    }

    private static ObjectMapper wrapper(JavaTimeModule times) {
        ObjectMapper mapper = new ObjectMapper();
        mapper.registerModule(times);
        mapper.setVisibility(PropertyAccessor.ALL, JsonAutoDetect.Visibility.ANY);
        mapper.activateDefaultTyping(LaissezFaireSubTypeValidator.instance, ObjectMapper.DefaultTyping.NON_FINAL);
        return mapper;
    }

    private static JavaTimeModule seconds() {
        DateTimeFormatter pattern = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss");
        JavaTimeModule times = new JavaTimeModule();
        times.addSerializer(LocalDateTime.class, new LocalDateTimeSerializer(pattern));
        times.addDeserializer(LocalDateTime.class, new LocalDateTimeDeserializer(pattern));
        return times;
    }

    private static JavaTimeModule patterns() {
        JavaTimeModule times = new JavaTimeModule();
        DateTimeFormatter full = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSS");
        DateTimeFormatter day = DateTimeFormatter.ofPattern("d.M.uuuu");
        DateTimeFormatter time = DateTimeFormatter.ofPattern("H'h'mm");
        times.addSerializer(LocalDateTime.class, new LocalDateTimeSerializer(full));
        times.addDeserializer(LocalDateTime.class, new LocalDateTimeDeserializer(full));
        times.addSerializer(LocalDate.class, new LocalDateSerializer(day));
        times.addDeserializer(LocalDate.class, new LocalDateDeserializer(day));
        times.addSerializer(LocalTime.class, new LocalTimeSerializer(time));
        times.addDeserializer(LocalTime.class, new LocalTimeDeserializer(time));
        return times;
    }

    static Map<String, Object> samples() {
        Map<String, Object> samples = new LinkedHashMap<>();
        locals(samples);
        instants(samples);
        others(samples);
        for (Map.Entry<String, Object> sample : Classes.samples().entrySet()) {
            samples.put(sample.getKey(), sample.getValue());
        }
        return samples;
    }

    private static void locals(Map<String, Object> samples) {
        LocalDate day = LocalDate.of(2024, 2, 29);
        int[][] times = {{12, 34, 56, 789_000_000}, {12, 34, 56, 0}, {12, 34, 0, 0}, {0, 0, 0, 0}, {1, 2, 0, 1}, {23, 59, 59, 999_999_999},
            {1, 2, 3, 500_000_000}};
        for (int[] parts : times) {
            LocalTime time = LocalTime.of(parts[0], parts[1], parts[2], parts[3]);
            clock(samples, "local." + time, clock -> {
                clock.local = day.atTime(time);
                clock.time = time;
                clock.open = day.atTime(time);
                clock.list = new ArrayList<>(List.of(day.atTime(time)));
            });
        }
        for (int year : new int[] {1, 99, 1970, 9999, 10000}) {
            LocalDate other = LocalDate.of(year, 1, 2);
            clock(samples, "day." + year, clock -> {
                clock.day = other;
                clock.open = other;
                clock.array = new LocalDate[] {other, null};
            });
        }
        samples.put("root.local", day.atTime(12, 34));
        samples.put("root.day", day);
        samples.put("root.list", new ArrayList<>(List.of(day, LocalTime.of(1, 2))));
    }

    private static void instants(Map<String, Object> samples) {
        long[][] points = {{0, 0}, {0, 1}, {1, 0}, {1_709_210_096, 789_000_000}, {-1, 0}, {-1, 999_000_000}, {-2, 1}, {253_402_300_800L, 5},
            {7, 500_000_000}};
        for (long[] parts : points) {
            Instant instant = Instant.ofEpochSecond(parts[0], parts[1]);
            clock(samples, "instant." + parts[0] + "." + parts[1], clock -> {
                clock.instant = instant;
                clock.open = instant;
                clock.map = new HashMap<>(Map.of("k", instant));
            });
            Duration gap = Duration.ofSeconds(parts[0], parts[1]);
            clock(samples, "gap." + parts[0] + "." + parts[1], clock -> {
                clock.gap = gap;
                clock.open = gap;
            });
        }
        for (long millis : new long[] {0, -1, 5, 1_709_210_096_789L, 1_709_210_096_000L, 253_402_300_800_000L, -62_135_596_800_000L}) {
            clock(samples, "date." + millis, clock -> {
                clock.date = new Date(millis);
                clock.open = new Date(millis);
            });
        }
        samples.put("root.instant", Instant.ofEpochSecond(5, 6));
        samples.put("root.date", new Date(5));
    }

    private static void others(Map<String, Object> samples) {
        clock(samples, "longs", clock -> {
            clock.longs = new ArrayList<>(List.of(1L, 2L));
            clock.boxes = new Long[] {1L, null};
            clock.uuid = new UUID(1, 2);
            clock.open = 5L;
        });
        Object[] opens = {new UUID(1, 2), Status.PAID, new long[] {1}, new Long[] {1L}, "a", 1.5f, (short) 1, List.of(), new ArrayList<>(List.of(1L)),
            new HashMap<>(Map.of("k", 1L)), new byte[] {1}};
        for (int at = 0; at < opens.length; at++) {
            Object open = opens[at];
            clock(samples, "open." + at, clock -> clock.open = open);
        }
        samples.put("root.long", 5L);
        samples.put("root.uuid", new UUID(1, 2));
        samples.put("root.longs", new ArrayList<>(List.of(1L, 2L)));
        LocalDateTime local = LocalDateTime.of(2024, 2, 29, 12, 34, 56);
        text(samples, "offset", (clock, value) -> clock.offset = value, local.atOffset(ZoneOffset.ofHours(2)));
        text(samples, "zoned", (clock, value) -> clock.zoned = value, local.atZone(ZoneId.of("Europe/Berlin")));
        text(samples, "offsetTime", (clock, value) -> clock.offsetTime = value, OffsetTime.of(local.toLocalTime(), ZoneOffset.UTC));
        text(samples, "year", (clock, value) -> clock.year = value, Year.of(2024));
        text(samples, "yearMonth", (clock, value) -> clock.yearMonth = value, YearMonth.of(2024, 2));
        text(samples, "monthDay", (clock, value) -> clock.monthDay = value, MonthDay.of(2, 29));
        text(samples, "period", (clock, value) -> clock.period = value, Period.of(1, 2, 3));
        text(samples, "zone", (clock, value) -> clock.zone = value, ZoneId.of("Europe/Berlin"));
        text(samples, "zoneOffset", (clock, value) -> clock.zoneOffset = value, ZoneOffset.ofHours(2));
    }

    private interface Setter<T> {
        void set(Clock clock, T value);
    }

    private static <T> void text(Map<String, Object> samples, String name, Setter<T> setter, T value) {
        clock(samples, "text." + name, clock -> setter.set(clock, value));
    }

    private static void clock(Map<String, Object> samples, String name, Consumer<Clock> fill) {
        Clock clock = new Clock();
        fill.accept(clock);
        samples.put(name, clock);
    }

    static void annotated(Map<String, Object> samples) {
        Ordered ordered = new Ordered();
        ordered.a = 1;
        samples.put("ordered.null", ordered);
        Ordered full = new Ordered();
        full.b = "b";
        full.c = 3L;
        full.d = ordered;
        samples.put("ordered.full", full);
        samples.put("created.null", new Created(null, null));
        Created created = new Created(3L, "b");
        created.d = 4;
        samples.put("created.full", created);
        samples.put("always.null", new Always());
        Always always = new Always();
        always.a = 1;
        always.c = new ArrayList<>(List.of("x"));
        always.d = new HashMap<>();
        always.d.put("k", null);
        always.e = new Always();
        samples.put("always.full", always);
        samples.put("sometimes.null", new Sometimes());
        Sometimes sometimes = new Sometimes();
        sometimes.b = "b";
        samples.put("sometimes.full", sometimes);
        samples.put("extra.none", new Extra());
        Extra extra = new Extra();
        extra.b = "b";
        extra.z = "z";
        extra.more.put("q", 1L);
        extra.more.put("a", "x");
        extra.more.put("n", null);
        extra.more.put("l", new ArrayList<>(List.of(1)));
        samples.put("extra.full", extra);
    }
}
