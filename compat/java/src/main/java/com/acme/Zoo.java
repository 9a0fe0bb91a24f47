package com.acme;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Collection;
import java.util.Date;
import java.util.EnumSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;

import com.fasterxml.jackson.annotation.JsonInclude;

/**
 * One of each kind of class that a codec has to handle.
 *
 * <p>Class names, field names and field types are part of the bytes of the test vectors. Changing one changes the vectors.
 */
public final class Zoo {
    private Zoo() {
    }

    public static class Order {
        public long id;
        public String customer;
        public int items;
        public double total;
        public boolean paid;
        public Long couponId;
        public Integer rank;
        public Status status;
        public Address address;
        public List<Line> lines;
        public List<String> tags;
        public Map<String, Integer> counts;
        public byte[] blob;
    }

    public static class Address {
        public String street;
        public int zip;
        public String city;
    }

    public static class Line {
        public String sku;
        public int quantity;
        public double price;
    }

    public static class Event {
        public String kind;
        public long at;
    }

    public static class RefundEvent extends Event {
        public long orderId;
        public String reason;
        public short attempt;
        public float ratio;
        public byte flag;
        public char mark;
    }

    public static class Envelope {
        public String type;
        public Map<String, Object> data;
        public List<Object> extra;
        public Object payload;
    }

    public static class Ledger {
        public BigDecimal amount;
        public UUID ref;
        public Date when;
        public BigInteger big;
        public Optional<String> note;
    }

    public static class Times {
        public Instant instant;
        public LocalDateTime local;
        public LocalDate day;
        public Duration gap;
    }

    public static class Nested {
        public List<List<String>> grid;
        public Map<String, List<Integer>> groups;
        public Set<String> names;
        public int[] ints;
        public String[] words;
        public long[] longs;
        public Line[] lines;
        public LinkedList<Integer> linked;
        public TreeMap<String, String> tree;
    }

    public static class Boxes {
        public Integer i;
        public Long l;
        public Double d;
        public Float f;
        public Boolean b;
        public Short s;
        public Byte y;
        public Character c;
    }

    public record Point(int x, int y, String label) {
    }

    public enum Status {
        NEW, PAID, SHIPPED, CLOSED
    }

    /** The constants have bodies, so each has a class of its own ({@code Zoo$Level$2} is HIGH). */
    public enum Level {
        LOW {
            @Override
            public int weight() {
                return 1;
            }
        },
        HIGH {
            @Override
            public int weight() {
                return 10;
            }
        };

        public abstract int weight();
    }

    /** Only some of the constants have bodies: B is {@code Zoo$Mixed$1}, D is {@code Zoo$Mixed$2}, A and C are {@code Zoo$Mixed}. */
    public enum Mixed {
        A,
        B {
            @Override
            public int weight() {
                return 1;
            }
        },
        C,
        D {
            @Override
            public int weight() {
                return 2;
            }
        };

        public int weight() {
            return 0;
        }
    }

    /** An enum at every place that a codec treats differently. */
    public static class Mixes {
        public Mixed one;
        public Object open;
        public Mixed[] array;
        public List<Mixed> list;
        public Map<String, Mixed> map;
        public EnumSet<Mixed> set;
        public Map<Mixed, Integer> keys;
    }

    public record Money(BigDecimal amount) {
    }

    public static final class Tag {
        public String name;
    }

    /** Lists whose element type is declared, and such whose is not. */
    public static class Loose {
        public Object open;
        public Object openMap;
        public Collection<Money> prices;
        public Map<String, Tag> tags;
        public List<Object> any;
    }

    /** Nulls that annotations make Jackson write. */
    public static class Nulls {
        @JsonInclude(JsonInclude.Include.ALWAYS)
        public String always;
        public String never;
        @JsonInclude(content = JsonInclude.Include.ALWAYS)
        public Map<String, Object> map;
        @JsonInclude(JsonInclude.Include.ALWAYS)
        public Tag tag;
    }

    public static class Amounts {
        public BigDecimal amount;
        public BigInteger big;
        public List<BigDecimal> amounts;
        public Map<String, BigInteger> bigs;
    }
}
