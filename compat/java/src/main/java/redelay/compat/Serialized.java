package redelay.compat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.text.SimpleDateFormat;
import java.time.DayOfWeek;
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
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Currency;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Stack;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.regex.Pattern;

import com.acme.Kept.Link;
import com.acme.Kept.LongLink;
import com.acme.Kept.Maybe;
import com.acme.Kept.Shelf;
import com.acme.Zoo.Level;
import com.acme.Zoo.Status;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;

/** Values that Redisson's Kryo5Codec leaves to Java's own serialization, and what may be inside of them. */
final class Serialized {
    /** Times as the texts that Java prints. */
    static final ObjectMapper TEXTS = Json.MAPPER.copy().disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
            .disable(SerializationFeature.WRITE_DURATIONS_AS_TIMESTAMPS).setDateFormat(new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSSX"));

    private Serialized() {
    }

    /** As Java's own serialization writes it. */
    static byte[] bytes(Object value) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream output = new ObjectOutputStream(bytes)) {
            output.writeObject(value);
        }
        return bytes.toByteArray();
    }

    /** For Kryo5Codec. */
    static Map<String, Object> samples() {
        Map<String, Object> samples = new LinkedHashMap<>();
        views(samples);
        shelves(samples);
        inside().forEach((name, value) -> samples.put("inside." + name, Collections.unmodifiableList(new ArrayList<>(Arrays.asList(value)))));
        return samples;
    }

    /** For a stream of Java's own serialization. */
    static Map<String, Object> inside() {
        Map<String, Object> samples = new LinkedHashMap<>();
        library(samples);
        collections(samples);
        times(samples);
        objects(samples);
        return samples;
    }

    private static void views(Map<String, Object> samples) {
        TreeMap<String, Integer> tree = new TreeMap<>(Map.of("a", 1, "b", 2));
        samples.put("list", Collections.unmodifiableList(new ArrayList<>(List.of("a", "b"))));
        samples.put("list.linked", Collections.unmodifiableList(new LinkedList<>(List.of("a", "b"))));
        samples.put("list.empty", Collections.unmodifiableList(new ArrayList<>()));
        samples.put("list.nested", Collections.unmodifiableList(new ArrayList<>(List.of(Collections.unmodifiableList(new ArrayList<>(List.of(1)))))));
        samples.put("collection", Collections.unmodifiableCollection(new ArrayList<>(List.of(1.5, 2.5))));
        samples.put("set", Collections.unmodifiableSet(new LinkedHashSet<>(List.of("x", "y"))));
        samples.put("set.sorted", Collections.unmodifiableSortedSet(new TreeSet<>(tree.keySet())));
        samples.put("set.navigable", Collections.unmodifiableNavigableSet(new TreeSet<>(tree.keySet())));
        samples.put("map", Collections.unmodifiableMap(new LinkedHashMap<>(tree)));
        samples.put("map.sorted", Collections.unmodifiableSortedMap(tree));
        samples.put("map.navigable", Collections.unmodifiableNavigableMap(tree));
        samples.put("map.empty", Collections.unmodifiableMap(new HashMap<>()));
        samples.put("synchronized.list", Collections.synchronizedList(new ArrayList<>(List.of("a"))));
        samples.put("synchronized.linked", Collections.synchronizedList(new LinkedList<>(List.of("a"))));
        samples.put("synchronized.set", Collections.synchronizedSet(new HashSet<>(List.of("a"))));
        samples.put("synchronized.map", Collections.synchronizedMap(new HashMap<>(Map.of("a", 1))));
        samples.put("synchronized.map.sorted", Collections.synchronizedSortedMap(tree));
        samples.put("checked.list", Collections.checkedList(new ArrayList<>(List.of("a")), String.class));
        samples.put("checked.map", Collections.checkedMap(new HashMap<>(Map.of("a", 1)), String.class, Integer.class));
        samples.put("enum.map", new EnumMap<>(Map.of(Status.NEW, 1, Status.PAID, 2)));
        samples.put("enum.map.bodies", new EnumMap<>(Map.of(Level.HIGH, "h")));
        samples.put("enum.map.empty", new EnumMap<Status, Integer>(Status.class));
        samples.put("enum.map.nested", new EnumMap<>(Map.of(DayOfWeek.MONDAY, new EnumMap<>(Map.of(Status.NEW, 1)))));
        samples.put("in.list", new ArrayList<>(List.of(Collections.unmodifiableList(new ArrayList<>(List.of("a"))),
                Collections.unmodifiableList(new ArrayList<>(List.of("a", "b"))), Collections.unmodifiableList(new ArrayList<>()))));
        samples.put("in.list.mixed", new ArrayList<>(Arrays.asList(Collections.unmodifiableList(new ArrayList<>(List.of("a"))), null,
                Collections.unmodifiableMap(new HashMap<>(Map.of("a", 1))), Collections.unmodifiableSet(new HashSet<>(List.of("a"))),
                new EnumMap<>(Map.of(Status.NEW, 1)), Collections.unmodifiableMap(new HashMap<>(Map.of("a", 2))),
                Collections.unmodifiableList(new LinkedList<>(List.of("a"))), new EnumMap<>(Map.of(Status.PAID, 1)),
                Collections.unmodifiableCollection(new ArrayList<>(List.of(1))), Collections.unmodifiableSortedMap(tree), 7)));
        List<String> same = Collections.unmodifiableList(new ArrayList<>(List.of("s")));
        samples.put("in.list.same", new ArrayList<>(List.of(same, same)));
        samples.put("in.map", new LinkedHashMap<>(Map.of("k", same)));
        samples.put("in.array", new Object[] {same, "x", Collections.unmodifiableList(new ArrayList<>(List.of("t")))});
        samples.put("optional.int", OptionalInt.of(5));
        samples.put("optional.long", OptionalLong.of(5));
        samples.put("optional.double", OptionalDouble.of(1.5));
        samples.put("optional.none", OptionalInt.empty());
        samples.put("pattern", Pattern.compile("a.*b", Pattern.CASE_INSENSITIVE));
    }

    private static void shelves(Map<String, Object> samples) {
        shelf(samples, "null", shelf -> { });
        shelf(samples, "views", shelf -> {
            shelf.map = Collections.unmodifiableMap(new HashMap<>(Map.of("a", 1)));
            shelf.sortedMap = Collections.unmodifiableSortedMap(new TreeMap<>(Map.of("a", 1L, "b", 2L)));
            shelf.list = Collections.unmodifiableList(new ArrayList<>(Arrays.asList(link(), null, longLink())));
            shelf.set = Collections.unmodifiableSet(new HashSet<>(List.of("x")));
            shelf.sortedSet = Collections.unmodifiableSortedSet(new TreeSet<>(List.of("x", "y")));
            shelf.collection = Collections.unmodifiableCollection(new ArrayList<>(List.of(1.5)));
            shelf.byStatus = new EnumMap<>(Map.of(Status.NEW, 1, Status.PAID, 2));
            shelf.byLevel = Collections.unmodifiableMap(new EnumMap<>(Map.of(Level.HIGH, "h")));
            shelf.open = Collections.unmodifiableList(new ArrayList<>(List.of(1, 2L)));
        });
        shelf(samples, "plain", shelf -> {
            shelf.map = new HashMap<>(Map.of("a", 1));
            shelf.list = new ArrayList<>(List.of(new Link("a", null)));
            shelf.byStatus = new EnumMap<>(Map.of(Status.NEW, 1));
            shelf.byLevel = new EnumMap<>(Map.of(Level.LOW, "l"));
        });
        Maybe maybe = new Maybe();
        samples.put("maybe.null", maybe);
        maybe = new Maybe();
        maybe.anInt = OptionalInt.of(-5);
        maybe.aLong = OptionalLong.of(1L << 40);
        maybe.aDouble = OptionalDouble.of(1.5);
        maybe.pattern = Pattern.compile("[a-z]+", Pattern.MULTILINE | Pattern.DOTALL);
        samples.put("maybe", maybe);
        maybe = new Maybe();
        maybe.anInt = OptionalInt.empty();
        maybe.aLong = OptionalLong.empty();
        maybe.aDouble = OptionalDouble.empty();
        samples.put("maybe.none", maybe);
    }

    private static void library(Map<String, Object> samples) {
        samples.put("null", null);
        samples.put("text", "\u00e4\ud83d\ude80\u0000x");
        samples.put("boolean", true);
        samples.put("byte", (byte) -1);
        samples.put("short", (short) -2);
        samples.put("char", 'c');
        samples.put("int", 7);
        samples.put("long", 1L << 40);
        samples.put("float", 1.5f);
        samples.put("double", -0.25);
        samples.put("bytes", new byte[] {1, 2, -1});
        samples.put("ints", new int[] {1, -2});
        samples.put("longs", new long[] {1});
        samples.put("doubles", new double[] {1.5});
        samples.put("booleans", new boolean[] {true, false});
        samples.put("texts", new String[] {"a", null, "a"});
        samples.put("arrays", new int[][] {{1}, null, {}});
        samples.put("objects", new Object[] {"a", 1, null});
        samples.put("big.integer", new BigInteger("-123456789012345678901234567890"));
        samples.put("big.zero", BigInteger.ZERO);
        samples.put("big.128", BigInteger.valueOf(-128));
        samples.put("big.decimal", new BigDecimal("12345678901234567.890"));
        samples.put("date", new Date(1_709_210_096_789L));
        samples.put("uuid", new UUID(1, 2));
        samples.put("enum", Status.PAID);
        samples.put("enum.body", Level.HIGH);
        samples.put("enum.library", TimeUnit.DAYS);
        samples.put("uri", URI.create("http://x/y?z"));
        samples.put("currency", Currency.getInstance("EUR"));
        samples.put("locale", Locale.GERMANY);
        samples.put("class", String.class);
        samples.put("atomic.int", new AtomicInteger(5));
        samples.put("atomic.long", new AtomicLong(5));
        samples.put("atomic.boolean", new AtomicBoolean(true));
        samples.put("pattern", Pattern.compile("a", Pattern.MULTILINE));
        samples.put("bits", BitSet.valueOf(new long[] {5}));
        samples.put("builder", new StringBuilder("ab"));
        samples.put("timestamp", new java.sql.Timestamp(1_709_210_096_789L));
    }

    private static void collections(Map<String, Object> samples) {
        List<Object> some = Arrays.asList("a", 1, null);
        List<String> texts = List.of("a", "b");
        Map<String, Integer> map = new LinkedHashMap<>(Map.of("k", 1));
        samples.put("array.list", new ArrayList<>(some));
        samples.put("linked.list", new LinkedList<>(some));
        samples.put("as.list", Arrays.asList("a", 1));
        samples.put("hash.set", new HashSet<>(List.of("a")));
        samples.put("linked.set", new LinkedHashSet<>(texts));
        samples.put("tree.set", new TreeSet<>(texts));
        TreeSet<String> reverse = new TreeSet<>(Collections.reverseOrder());
        reverse.addAll(texts);
        samples.put("tree.set.reverse", reverse);
        samples.put("deque", new ArrayDeque<>(texts));
        samples.put("priority", new PriorityQueue<>(texts));
        samples.put("vector", new Vector<>(some));
        Stack<Object> stack = new Stack<>();
        stack.addAll(some);
        samples.put("stack", stack);
        samples.put("copied.list", new CopyOnWriteArrayList<>(some));
        samples.put("copied.set", new CopyOnWriteArraySet<>(texts));
        samples.put("concurrent.queue", new ConcurrentLinkedQueue<>(texts));
        samples.put("concurrent.deque", new ConcurrentLinkedDeque<>(texts));
        samples.put("skip.set", new ConcurrentSkipListSet<>(texts));
        samples.put("blocking.queue", new LinkedBlockingQueue<>(texts));
        samples.put("blocking.deque", new LinkedBlockingDeque<>(texts));
        samples.put("empty.list", Collections.emptyList());
        samples.put("empty.set", Collections.emptySet());
        samples.put("empty.map", Collections.emptyMap());
        samples.put("singleton.list", Collections.singletonList("a"));
        samples.put("singleton.set", Collections.singleton("a"));
        samples.put("singleton.map", Collections.singletonMap("a", 1));
        samples.put("list.of", List.of("a", 1));
        samples.put("list.of.many", List.of(1, 2, 3, 4));
        samples.put("set.of", java.util.Set.of("a"));
        samples.put("map.of", Map.of("a", 1));
        samples.put("copies", Collections.nCopies(3, "a"));
        samples.put("enum.set", EnumSet.of(Status.NEW, Status.PAID));
        samples.put("enum.set.none", EnumSet.noneOf(Status.class));
        samples.put("hash.map", new HashMap<>(map));
        samples.put("linked.map", map);
        samples.put("tree.map", new TreeMap<>(map));
        samples.put("concurrent.map", new ConcurrentHashMap<>(map));
        samples.put("skip.map", new ConcurrentSkipListMap<>(map));
        samples.put("hashtable", new Hashtable<>(map));
        samples.put("identity.map", new IdentityHashMap<>(map));
        Properties properties = new Properties();
        properties.put("p", "v");
        samples.put("properties", properties);
        samples.put("enum.map", new EnumMap<>(Map.of(Status.NEW, 1)));
        samples.put("entry", new SimpleEntry<>("k", 1));
        samples.put("unmodifiable", Collections.unmodifiableMap(map));
        samples.put("unmodifiable.set", Collections.unmodifiableSet(new TreeSet<>(texts)));
        samples.put("synchronized", Collections.synchronizedList(new ArrayList<>(texts)));
        Map<Integer, Object> numbers = new TreeMap<>();
        for (int number = 0; number < 300; number++) {
            numbers.put(number, (long) number);
        }
        samples.put("many", numbers);
    }

    private static void times(Map<String, Object> samples) {
        LocalDateTime time = LocalDateTime.of(2024, 2, 29, 12, 34, 56, 789_000_000);
        samples.put("instant", Instant.ofEpochSecond(-1, 5));
        samples.put("duration", Duration.ofSeconds(3, 5));
        samples.put("local.date", time.toLocalDate());
        samples.put("local.time", time.toLocalTime());
        samples.put("local.time.hour", LocalTime.of(12, 0));
        samples.put("local.time.minute", LocalTime.of(12, 34));
        samples.put("local.time.second", LocalTime.of(12, 34, 56));
        samples.put("local.date.time", time);
        samples.put("zoned", time.atZone(ZoneId.of("Europe/Berlin")));
        samples.put("zoned.offset", time.atZone(ZoneOffset.ofHours(2)));
        samples.put("offset", time.atOffset(ZoneOffset.ofHoursMinutesSeconds(1, 2, 3)));
        samples.put("offset.time", OffsetTime.of(time.toLocalTime(), ZoneOffset.UTC));
        samples.put("zone", ZoneId.of("Europe/Berlin"));
        samples.put("zone.offset", ZoneOffset.ofHours(-2));
        samples.put("year", Year.of(2024));
        samples.put("year.month", YearMonth.of(2024, 2));
        samples.put("month.day", MonthDay.of(2, 29));
        samples.put("period", Period.of(1, 2, 3));
        samples.put("day", DayOfWeek.FRIDAY);
        samples.put("dates", new LocalDate[] {time.toLocalDate(), null, time.toLocalDate()});
        samples.put("zone.id", TimeZone.getTimeZone("Europe/Berlin").toZoneId());
    }

    private static void objects(Map<String, Object> samples) {
        samples.put("link", link());
        samples.put("link.long", longLink());
        samples.put("link.empty", new Link());
        Link shared = new Link("shared", null);
        samples.put("shared", new ArrayList<>(List.of(shared, shared, new Link("a", shared))));
        samples.put("map.of.links", new LinkedHashMap<>(Map.of("k", link())));
        samples.put("links", new Link[] {link(), null});
        samples.put("own", new Own());
    }

    private static Link link() {
        Link link = new Link("a", new Link("b", null));
        link.number = 7;
        link.big = 8L;
        link.status = Status.PAID;
        link.cost = new BigDecimal("1.50");
        link.at = new Date(1_709_210_096_789L);
        link.sizes = new int[] {1, 2};
        link.tags = new ArrayList<>(List.of("x", "y"));
        return link;
    }

    private static LongLink longLink() {
        LongLink link = new LongLink();
        link.name = "l";
        link.last = true;
        return link;
    }

    /** Writes its data itself, behind its fields. */
    public static final class Own implements Serializable {
        private static final long serialVersionUID = 1;
        public int kept = 5;

        private void writeObject(ObjectOutputStream output) throws IOException {
            output.defaultWriteObject();
            output.writeInt(6);
            output.writeObject("more");
        }
    }

    private static void shelf(Map<String, Object> samples, String name, Consumer<Shelf> fill) {
        Shelf shelf = new Shelf();
        fill.accept(shelf);
        samples.put("shelf." + name, shelf);
    }
}
