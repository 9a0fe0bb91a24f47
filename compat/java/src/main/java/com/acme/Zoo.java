package com.acme;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Date;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;

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
}
