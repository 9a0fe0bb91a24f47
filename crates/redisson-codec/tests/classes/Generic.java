package com.acme;

import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.*;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import org.redisson.codec.Kryo5Codec;

/** Type parameters, and other things that decide where Kryo writes a class. {@code main} writes the vectors. */
public final class Generic {
    static class Page<T> {
        T first;
        List<T> items;
        Map<String, T> byName;
        T[] array;
        Page<T> next;
        Object any;
    }

    static final class Tag {
        String name;

        Tag() {
        }

        Tag(String name) {
            this.name = name;
        }
    }

    static class Open {
        long number;
    }

    static class Fields {
        Page<Long> longs;
        Page<Tag> tags;
        Page<Open> opens;
        @SuppressWarnings("rawtypes")
        Page raw;
        List<Page<Long>> pages;
        Map<String, Page<Tag>> byName;
        Page<List<Long>> nested;
        Page<? extends Number> wild;
        Page<?> any;
    }

    abstract static class Base<T> {
        T id;
        List<T> ids;
    }

    static class Sub extends Base<Long> {
        String own;
    }

    static class SubSub extends Sub {
    }

    static class Mid<U> extends Base<U> {
        U mine;
    }

    static class SubMid extends Mid<String> {
    }

    static class Bases {
        Base<Long> base;
        Mid<Long> mid;
        Sub sub;
        SubMid subMid;
        List<Base<Long>> list;
    }

    record Rec(List<Long> longs, Page<Long> page, Map<String, Long> map, Tag tag, int number, Open open) {
    }

    static class Props extends HashMap<String, Object> {
    }

    static final class Names extends ArrayList<String> {
    }

    static class Tree extends TreeMap<String, Long> {
    }

    enum Way {
        SMTP, PIGEON
    }

    enum Mixed {
        A, B {
        },
        C(new Object() {
        }) {
        },
        D;

        Mixed() {
        }

        Mixed(Object argument) {
        }
    }

    static class Holder {
        Props props;
        Names names;
        Tree tree;
        List<Tree> trees;
        List<List<Long>> grid;
        Map<Long, List<Tag>> lines;
        Tag[] tags;
        Tag[][] deep;
        Open[] opens;
        Way way;
        List<Way> ways;
        Map<Way, Long> byWay;
        EnumSet<Way> set;
        Way[] wayArray;
        Mixed mixed;
        List<Mixed> mixedList;
        Optional<Tag> optional;
        long[][] numbers;
        Number number;
        List<?> wild;
        List<? extends Tag> wildTags;
        Set<BigDecimal> amounts;
        SortedMap<String, Tag> sorted;
        List<Names> lists;
        char mark;
        short small;
        byte tiny;
        float ratio;
        double exact;
        boolean flag;
        transient int skipped = 7;
        static int shared = 8;
    }

    static class Twice extends Open {
        String number;
    }

    @SafeVarargs
    static <T> List<T> list(T... elements) {
        return new ArrayList<>(Arrays.asList(elements));
    }

    static <K, V> Map<K, V> map(K key, V value) {
        Map<K, V> map = new LinkedHashMap<>();
        map.put(key, value);
        return map;
    }

    static <T> Page<T> page(T first, T second, T[] array) {
        Page<T> page = new Page<>();
        page.first = first;
        page.items = list(second, null, first);
        page.byName = map("k", second);
        page.array = array;
        page.next = new Page<>();
        page.next.first = second;
        page.next.items = list(first, second);
        page.any = first;
        return page;
    }

    static Open open(long number) {
        Open open = new Open();
        open.number = number;
        return open;
    }

    static <B extends Base<T>, T> B base(B base, T id, T other) {
        base.id = id;
        base.ids = list(id, other);
        return base;
    }

    static Map<String, Object> samples() {
        Map<String, Object> samples = new LinkedHashMap<>();
        Page<Long> longs = page(1L, 2L, new Long[] {3L, null});
        Page<Tag> tags = page(new Tag("a"), new Tag("b"), new Tag[] {new Tag("c"), null});
        Page<Open> opens = page(open(1), open(2), new Open[] {open(3), null});
        samples.put("page.longs", longs);
        samples.put("page.tags", tags);
        samples.put("page.empty", new Page<Long>());
        samples.put("fields.empty", new Fields());
        Fields fields = new Fields();
        fields.longs = longs;
        samples.put("fields.longs", fields);
        fields = new Fields();
        fields.tags = tags;
        fields.opens = opens;
        samples.put("fields.tags", fields);
        fields = new Fields();
        fields.raw = page("x", "y", new String[] {"z"});
        fields.pages = list(longs, null, longs);
        fields.byName = map("t", tags);
        samples.put("fields.pages", fields);
        fields = new Fields();
        fields.nested = new Page<>();
        fields.nested.first = list(1L, 2L);
        fields.nested.items = list(list(3L), list(4L, null));
        fields.any = page("x", "y", new String[0]);
        samples.put("fields.nested", fields);
        fields = new Fields();
        fields.wild = longs;
        samples.put("fields.wild", fields);
        samples.put("sub", base(new Sub(), 1L, 2L));
        samples.put("sub.sub", base(new SubSub(), 1L, 2L));
        samples.put("mid", base(new Mid<Long>(), 1L, 2L));
        samples.put("sub.mid", base(new SubMid(), "a", "b"));
        Bases bases = new Bases();
        bases.base = base(new Sub(), 1L, 2L);
        bases.mid = base(new Mid<>(), 3L, 4L);
        bases.mid.mine = 5L;
        bases.sub = base(new SubSub(), 6L, 7L);
        bases.subMid = base(new SubMid(), "a", "b");
        bases.subMid.mine = "c";
        bases.list = list(base(new Mid<Long>(), 8L, 9L), base(new Sub(), 1L, 2L), null);
        samples.put("bases", bases);
        bases = new Bases();
        bases.base = base(new Mid<Long>(), 8L, 9L);
        samples.put("bases.mid", bases);
        bases = new Bases();
        bases.base = base(new SubSub(), 8L, 9L);
        samples.put("bases.sub", bases);
        samples.put("rec", new Rec(list(1L, null), longs, map("k", 1L), new Tag("a"), 7, open(1)));
        samples.put("rec.empty", new Rec(null, null, null, null, 0, null));
        Holder holder = new Holder();
        samples.put("holder.empty", holder);
        holder = new Holder();
        holder.props = new Props();
        holder.props.put("n", 1L);
        holder.names = new Names();
        holder.names.add("a");
        holder.tree = new Tree();
        holder.tree.put("k", 1L);
        holder.trees = list(holder.tree, null);
        samples.put("holder.own", holder);
        holder = new Holder();
        holder.grid = list(list(1L), null, list(2L, null));
        holder.lines = map(1L, list(new Tag("a"), null));
        holder.tags = new Tag[] {new Tag("a"), null};
        holder.deep = new Tag[][] {{new Tag("a")}, null, {}};
        holder.opens = new Open[] {open(1), null};
        holder.lists = list(new Names(), null);
        samples.put("holder.lists", holder);
        holder = new Holder();
        holder.way = Way.PIGEON;
        holder.ways = list(Way.SMTP, null);
        holder.byWay = map(Way.PIGEON, 1L);
        holder.set = EnumSet.of(Way.PIGEON);
        holder.wayArray = new Way[] {Way.PIGEON, null};
        holder.mixed = Mixed.C;
        holder.mixedList = list(Mixed.A, Mixed.B, Mixed.C, null);
        samples.put("holder.enums", holder);
        holder = new Holder();
        holder.optional = Optional.of(new Tag("a"));
        holder.numbers = new long[][] {{1, 2}, null};
        holder.number = 7;
        holder.wild = list(1L, 2L);
        holder.wildTags = list(new Tag("a"), new Tag("b"));
        holder.amounts = new HashSet<>(list(new BigDecimal("9.90")));
        holder.sorted = new TreeMap<>(map("k", new Tag("a")));
        holder.mark = 'x';
        holder.small = -2;
        holder.tiny = -3;
        holder.ratio = 0.5f;
        holder.exact = 0.25;
        holder.flag = true;
        samples.put("holder.rest", holder);
        Twice twice = new Twice();
        twice.number = "n";
        ((Open) twice).number = 7;
        samples.put("twice", twice);
        samples.put("props", fillProps());
        samples.put("list.enums", list(Way.SMTP, Way.PIGEON, null));
        samples.put("list.own", list(new Tag("a"), null, open(1), longs));
        samples.put("array.tags", new Tag[] {new Tag("a"), null});
        samples.put("array.opens", new Open[] {open(1), new Twice(), null});
        samples.put("array.bases", new Base<?>[] {base(new Sub(), 1L, 2L)});
        samples.put("mixed.B", Mixed.B);
        samples.put("mixed.C", Mixed.C);
        samples.put("mixed.D", Mixed.D);
        samples.put("set", EnumSet.of(Way.SMTP));
        return samples;
    }

    static Props fillProps() {
        Props props = new Props();
        props.put("tag", new Tag("a"));
        props.put("list", list(1, "x"));
        return props;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        out.println("# name\tJava class\t-\tbytes in hex, as Redisson 4.7.0 writes them");
        for (Map.Entry<String, Object> sample : samples().entrySet()) {
            ByteBuf bytes;
            try {
                bytes = new Kryo5Codec().getValueEncoder().encode(sample.getValue());
            } catch (RuntimeException e) {
                System.err.println(sample.getKey() + ": " + e);
                continue;
            }
            String hex = HexFormat.of().formatHex(ByteBufUtil.getBytes(bytes));
            out.println(sample.getKey() + "\t" + sample.getValue().getClass().getName() + "\t!\t" + hex);
        }
        out.flush();
        System.exit(0);
    }
}
