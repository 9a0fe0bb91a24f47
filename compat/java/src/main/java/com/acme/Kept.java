package com.acme;

import java.io.Serializable;
import java.math.BigDecimal;
import java.util.Collection;
import java.util.Date;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.regex.Pattern;

import com.acme.Zoo.Level;
import com.acme.Zoo.Status;

/** What Redisson leaves to Java's own serialization, and objects of an application in it. */
public final class Kept {
    private Kept() {
    }

    public static class Link implements Serializable {
        private static final long serialVersionUID = 1;
        public String name;
        public int number;
        public Long big;
        public Status status;
        public BigDecimal cost;
        public Date at;
        public int[] sizes;
        public List<String> tags;
        public Link next;

        public Link() {
        }

        public Link(String name, Link next) {
            this.name = name;
            this.next = next;
        }
    }

    public static class LongLink extends Link {
        private static final long serialVersionUID = 1;
        public boolean last;
    }

    /** One of each. */
    public static class Shelf {
        public Map<String, Integer> map;
        public SortedMap<String, Long> sortedMap;
        public List<Link> list;
        public Set<String> set;
        public SortedSet<String> sortedSet;
        public Collection<Double> collection;
        public EnumMap<Status, Integer> byStatus;
        public Map<Level, String> byLevel;
        public Object open;
    }

    /** Small final classes of the library. */
    public static class Maybe {
        public OptionalInt anInt;
        public OptionalLong aLong;
        public OptionalDouble aDouble;
        public Pattern pattern;
    }
}
