package redelay.compat;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

import com.acme.Zoo.Amounts;
import com.acme.Zoo.Level;
import com.acme.Zoo.Loose;
import com.acme.Zoo.Mixed;
import com.acme.Zoo.Mixes;
import com.acme.Zoo.Money;
import com.acme.Zoo.Nulls;
import com.acme.Zoo.Status;
import com.acme.Zoo.Tag;

/** Values of which the codecs write what a struct alone does not tell: the classes at places where nothing declares them. */
final class Samples {
    private Samples() {
    }

    /** By name, in the order of the file. */
    static Map<String, Object> of(String codec) {
        Map<String, Object> samples = new LinkedHashMap<>();
        if (codec.startsWith("typed-json:")) {
            amounts(samples);
            return samples;
        }
        enums(samples);
        roots(samples);
        loose(samples);
        if (!codec.equals("kryo5")) {
            nulls(samples);
        }
        return samples;
    }

    private static void enums(Map<String, Object> samples) {
        for (Mixed mixed : Mixed.values()) {
            samples.put("mixed." + mixed, mixed);
            samples.put("mixes." + mixed, mixes(mixed, mixed));
            samples.put("mixedset." + mixed, EnumSet.of(mixed));
            samples.put("mixedlist." + mixed, list(mixed, mixed));
        }
        samples.put("mixes.BA", mixes(Mixed.B, Mixed.A));
        samples.put("mixes.none", mixes());
        samples.put("mixes.null", new Mixes());
        samples.put("mixedset.none", EnumSet.noneOf(Mixed.class));
        samples.put("mixedset.all", EnumSet.allOf(Mixed.class));
        samples.put("mixedset.BC", EnumSet.of(Mixed.B, Mixed.C));
        samples.put("mixedlist.all", list((Object[]) Mixed.values()));
        samples.put("mixedlist.BnB", list(Mixed.B, null, Mixed.B));
        samples.put("mixedlist.AnC", list(Mixed.A, null, Mixed.C));
        samples.put("mixedarray", Mixed.values());
        for (Level level : Level.values()) {
            samples.put("levelset." + level, EnumSet.of(level));
        }
        samples.put("levelset.none", EnumSet.noneOf(Level.class));
        samples.put("levelset.all", EnumSet.allOf(Level.class));
    }

    private static Mixes mixes(Mixed... constants) {
        Mixes mixes = new Mixes();
        mixes.array = constants;
        mixes.list = list(constants);
        mixes.map = new LinkedHashMap<>();
        mixes.keys = new LinkedHashMap<>();
        mixes.set = EnumSet.noneOf(Mixed.class);
        for (Mixed constant : constants) {
            mixes.one = constant;
            mixes.open = constant;
            mixes.map.put("k", constant);
            mixes.keys.put(constant, constant.ordinal());
            mixes.set.add(constant);
        }
        return mixes;
    }

    /** A list of the whole payload, whose element type nothing declares. */
    private static void roots(Map<String, Object> samples) {
        samples.put("list.money", list(money("1.50"), null, money("-2")));
        samples.put("list.tag", list(tag("a"), tag(null)));
        samples.put("list.status", list(Status.NEW, Status.PAID));
        samples.put("list.short", list((short) 1, (short) -2));
        samples.put("list.byte", list((byte) 1));
        samples.put("list.int", list(1, 2));
        samples.put("list.long", list(1L, 2L));
        samples.put("list.float", list(1.5f, Float.NaN));
        samples.put("list.double", list(1.5, Double.NaN));
        samples.put("list.boolean", list(true, false));
        samples.put("list.char", list('a'));
        samples.put("list.string", list("a", "b"));
        samples.put("list.bytes", list(new byte[] {1, 2}));
        samples.put("list.uuid", list(new UUID(1, 2)));
        samples.put("list.decimal", list(new BigDecimal("1.50")));
        samples.put("list.ints", list(new int[] {1, 2}));
        samples.put("list.chars", list((Object) "ab".toCharArray()));
        samples.put("list.strings", list((Object) new String[] {"a", null}));
        samples.put("list.moneys", list((Object) new Money[] {money("3")}));
        samples.put("list.list.money", list(list(money("4"))));
        samples.put("list.map.money", list(map("k", money("5"))));
        samples.put("map.money", map("k", money("6")));
        samples.put("map.tag", map("k", tag("t")));
        samples.put("map.short", map("k", (short) 7));
        samples.put("map.list.money", map("k", list(money("8"))));
        samples.put("array.money", new Money[] {money("9")});
        samples.put("array.list.money", new List<?>[] {list(money("10"))});
        samples.put("tree.short", new TreeMap<>(Map.of("k", (short) 7)));
    }

    private static void loose(Map<String, Object> samples) {
        Loose loose = new Loose();
        samples.put("loose.null", loose);
        loose = new Loose();
        loose.open = list(money("1"), money("2"));
        loose.openMap = map("k", tag("t"));
        loose.prices = list(money("3"));
        loose.tags = map("k", tag("u"));
        loose.any = list((Object) list((short) 1), map("k", (byte) 2));
        samples.put("loose.full", loose);
        loose = new Loose();
        loose.open = list((Object) list(money("1")));
        loose.openMap = map("k", list(tag("t")));
        samples.put("loose.deep", loose);
    }

    private static void nulls(Map<String, Object> samples) {
        Nulls nulls = new Nulls();
        samples.put("nulls.null", nulls);
        nulls = new Nulls();
        nulls.always = "a";
        nulls.map = map("k", null);
        samples.put("nulls.map", nulls);
        nulls = new Nulls();
        nulls.map = map("k", list(nulls.map, map("l", null), null));
        nulls.tag = tag(null);
        samples.put("nulls.deep", nulls);
        samples.put("map.null", map("k", null));
    }

    private static void amounts(Map<String, Object> samples) {
        samples.put("amounts.null", new Amounts());
        for (String amount : List.of("12345678901234567.89", "9.90", "0", "0.00", "-0.5", "1E+3", "1E-10", "100000000000000000000",
                "0.1000000000000000055511151231257827", "123456789012345678901234567890.5")) {
            Amounts amounts = new Amounts();
            amounts.amount = new BigDecimal(amount);
            amounts.amounts = list(amounts.amount, null);
            samples.put("amounts." + amount, amounts);
        }
        for (String big : List.of("0", "-1", "9223372036854775808", "18446744073709551616", "-123456789012345678901234567890")) {
            Amounts amounts = new Amounts();
            amounts.big = new BigInteger(big);
            amounts.bigs = map("k", amounts.big);
            samples.put("bigs." + big, amounts);
        }
    }

    private static Money money(String amount) {
        return new Money(new BigDecimal(amount));
    }

    private static Tag tag(String name) {
        Tag tag = new Tag();
        tag.name = name;
        return tag;
    }

    @SafeVarargs
    static <T> List<T> list(T... elements) {
        List<T> list = new ArrayList<>();
        for (T element : elements) {
            list.add(element);
        }
        return list;
    }

    static <V> Map<String, V> map(String key, V value) {
        Map<String, V> map = new HashMap<>();
        map.put(key, value);
        return map;
    }

    static <V> Map<String, V> map(String key, V value, String key2, V value2) {
        Map<String, V> map = map(key, value);
        map.put(key2, value2);
        return map;
    }
}
